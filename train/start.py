"""Start of a run: from options to a checked `Trainer` with data, model, optimizer and state.

All is checked before the first step: a manifest, model or checkpoint that does not fit is an error naming both values.

    from train import SFTConfig, Trainer
    result = Trainer(SFTConfig.of(manifest="manifests/my/pack.json", preset="tiny", steps=100)).fit()

With --data, `datakit pack` packs files into the run's folder first, which needs datakit's own dependencies:

    python -m train.sft --data chats.jsonl --tokenizer path/to/tokenizer --seq-len 512 --preset tiny
"""

import contextlib
import importlib.util
import subprocess
import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

import torch

from datakit.config import UnknownKeyError, build, canonical, option, resolved, section
from datakit.errors import ConfigError, InputError, MissingExtraError, UsageError
from datakit.pack.chat import ChatTokenizer
from datakit.storage import locked, pull_result, write_whole
from train import checkpoint, flags, hf
from train.config import LOG, EvaluatorConfig, LoopConfig, LoraConfig, MoeConfig, QuickConfig, SizesConfig, more, placed
from train.data import DataConfig, Mixture, StepStream
from train.device import allow_tf32, limit_memory, precision, sum_in_one_order, usable_device
from train.loop import Loop, Loss
from train.loss import LossConfig
from train.model import PRESETS, CausalLM, ModelConfig
from train.optim import OptimConfig, make_optimizer, peak_rate
from train.ranks import Ranks, RanksConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class RunConfig:
    """Configuration of a training run; an objective extends it with its loss and its own options."""

    rows_per_unit: ClassVar[int] = 1
    """Number of neighbouring rows that belong together for the objective."""
    flat_rows: ClassVar[bool] = False
    """Whether packed rows have one sequence each, and a micro-batch takes them without their padding."""
    every_token: ClassVar[bool] = False
    """Whether every token is a label, whatever the data marks."""
    trained_share: ClassVar[float] = 0.2
    """Default peak learning rate for trained weights, as a share of that for random ones."""
    needs_data: ClassVar[bool] = True
    """Whether the objective trains on packed rows."""
    needs_model: ClassVar[str] = ""
    """Why the objective needs a trained model; empty if it does not."""

    manifest: str | tuple[str, ...] = option("", "manifest to train on, as manifests/my/pack.json; mixed if several")
    quick: QuickConfig = section(QuickConfig)
    preset: Literal["tiny", "26m", "64m", "104m"] = option("26m", "size of a model with random weights")
    sizes: SizesConfig = section(SizesConfig)
    model: str = option("", "model to start from: a folder, a run, or a name such as Qwen/Qwen3-0.6B (also --init)")
    weights_dtype: Literal["fp32", "bf16"] = more("fp32", "bf16: half the memory; small updates are rounded away")
    data: DataConfig = section(DataConfig)
    optim: OptimConfig = section(OptimConfig)
    loop: LoopConfig = section(LoopConfig)
    lora: LoraConfig = section(LoraConfig)
    evaluator: EvaluatorConfig = section(EvaluatorConfig)
    labels: LossConfig = section(LossConfig)
    moe: MoeConfig = section(MoeConfig)
    ranks: RanksConfig = section(RanksConfig)

    def __post_init__(self) -> None:
        if self.model and (self.sizes != SizesConfig() or self.moe.num_experts):
            raise UsageError("sizes and options are for random weights: a --model has its own in config.json")
        if self.weights_dtype == "bf16" and self.loop.dtype in ("fp32", "fp16"):
            raise ConfigError(f"--weights-dtype bf16 is for arithmetic in bf16, found --dtype {self.loop.dtype}")
        if self.lora.lora_rank and not self.model:
            raise UsageError("--lora-rank needs --model: adapters on random weights are useless")
        if self.needs_data and bool(self.manifest) == bool(self.quick.data):
            if self.loop.resume and not self.manifest:
                raise UsageError(f"{self.loop.out}: holds no run to resume; name the --out of the run that was begun")
            raise UsageError("name a pack manifest with --manifest (manifests/my/pack.json), or files with --data")
        if self.evaluator.eval_every and not (self.manifest or self.evaluator.eval_manifest):
            raise UsageError("--eval-every without --manifest: name packed rows to evaluate on with --eval-manifest")
        if self.needs_model and not self.model:
            raise UsageError(f"name a trained model with --model: {self.needs_model}")

    @classmethod
    def of(cls, **values: Any) -> Self:
        """The configuration from options by name, as on the command line: `of(manifest="pack.json", steps=100)`.

        Raises:
            UsageError: a name that is no option.
            ConfigError: an invalid value.
            InputError: run.json of the resumed run is unreadable.
        """
        return build(cls, _with_earlier(placed(cls, values)), "options")

    def objective(self, data: Mixture, model: CausalLM, device: torch.device) -> Loss:
        """The loss of the run, for its data and the model that it trains; other models that it needs go on `device`."""
        raise NotImplementedError


C = TypeVar("C", bound=RunConfig)


def configured(config: type[C], prog: str, about: str | None, argv: Sequence[str]) -> C:
    """The configuration from the command line; for a resumed run the defaults are its own earlier values.

    Raises:
        ConfigError: an invalid value.
        InputError: run.json of the resumed run is unreadable.
    """
    values = _with_earlier(flags.given(config, prog, about, argv))
    try:
        return flags.built(config, values)
    except UnknownKeyError as e:  # flags are known, so it is in run.json
        which = "another command, or of an earlier version with another option"
        advice = "resume it with that one, or train on from its weights with --model and another --out"
        raise UsageError(f"{values['loop']['out']}: holds a run of {which}: {advice} ({e})") from None


def _with_earlier(values: dict[str, Any]) -> dict[str, Any]:
    """The values, and those of the run that is resumed, if one is."""
    loop = values.get("loop", {})
    if not loop.get("resume"):
        return values
    from train import resume

    return resume.with_earlier(Path(loop.get("out", "out/run")) / "run.json", values)


def finish(trainer: Loop, prog: str) -> int:
    """Run a trainer to its end; prints the next command to type, and returns the exit code.

    The code is 0, or 128 + the signal that stopped the run.
    """
    result, out = trainer.fit(), trainer.loop.out
    code = 128 + result.stopped_by if result.stopped_by else 0
    if trainer.loop.save_every and result.step == trainer.total_steps:
        name, joint, _ = prog.rpartition("." if prog.startswith("python") else " ")
        LOG.info(f"next: {name}{joint}generate --model {out} --prompt Hello")
    elif trainer.loop.save_every:
        LOG.info(f"next: {prog} --out {out} --resume")
    return code


class Trainer(Loop):
    """A run, from its configuration. After all checks it is ready for `fit`; it logs a summary line."""

    def __init__(
        self, config: RunConfig, loss: Loss | None = None, data: Mixture | None = None, model: CausalLM | None = None
    ) -> None:
        """`loss` takes the place of the objective; `data` and `model` are given if they are there already.

        Raises:
            DatakitError: manifest, model and checkpoint do not fit each other, or `out` contains another run.
        """
        device, out = usable_device(config.loop.device, config.loop.threads), Path(config.loop.out)
        config.labels.check(device)
        ranks = Ranks.join(device, config.ranks)
        allow_tf32(config.loop.tf32)
        if config.loop.deterministic:
            sum_in_one_order(device)
        unlimit = weakref.finalize(self, limit_memory(device, config.loop.memory_limit))  # also without a `fit`
        if config.model:
            config = replace(config, model=str(checkpoint.find_model(config.model)))
        data = data or open_data(config, ranks)
        torch.manual_seed(config.loop.seed)
        model = model or _initial_model(config, data, ranks)
        loss = loss or config.objective(data, model, device)
        if not config.loop.threads:  # small products lose more by the meeting of threads than they gain
            torch.set_num_threads(max(1, min(torch.get_num_threads(), model.config.hidden_size // 64)))
        if config.weights_dtype == "bf16":
            config = replace(config, loop=replace(config.loop, dtype="bf16"))
        share, adapters = config.trained_share if config.model else 1.0, None
        if config.lora.lora_rank:
            from train import lora, weights

            lora.attach(model, config.lora, torch.Generator().manual_seed(config.loop.seed))
            adapters = lora.Adapters(config.lora, Path(config.model), weights.fingerprint(Path(config.model)))
            share *= lora.RATE_RATIO
        model = _on_device(config, model, ranks)
        lr = peak_rate(config.optim, model.config.hidden_size, share)
        config = replace(config, optim=replace(config.optim, lr=lr))
        optimizer = make_optimizer(model, config.optim)
        stream = StepStream(
            data, config.data, config.loop.seed, rank=ranks.rank, ranks=ranks.size, pin=device.type == "cuda",
            fill=True, flat=config.flat_rows and not config.loop.compile,  # compiled layers want few shapes
        )  # fmt: skip
        evaluate = None
        if config.evaluator.eval_every:
            from train.eval import evaluator

            evaluate = evaluator(config, data, model.config.max_positions, ranks)
        steps = config.loop.steps or stream.plan.first_step(config.loop.epochs)
        stop_ids: tuple[int, ...] = ()
        if any(s.packed.labels is not None for s in data.sets) and data.tokenizer_files:
            stop_ids = tuple(ChatTokenizer.load(data.tokenizer_files[0].parent).stop_ids())
        state = checkpoint.State(
            step=0, task=data.header.task, manifest_version=data.version, tokenizer=data.tokenizer,
            order=resolved(config.data) | {"seed": config.loop.seed}, config=resolved(config),
            stop_ids=stop_ids, base_sha256=adapters.base_sha256 if adapters else "")  # fmt: skip
        ranks.agree({"data": data.version, "order": state.order, "steps": steps, "optimizer": resolved(config.optim)})
        with contextlib.ExitStack() as held:
            ranks.by_first(lambda: held.enter_context(locked(out, required=False)))
            if config.loop.resume:
                from train import resume

                state = resume.resumed(config, ranks, state, model, optimizer, steps)
            elif done := checkpoint.steps(out / "checkpoints"):
                raise UsageError(f"{out} holds a run, up to {done[0].name}: add --resume, or name another --out")
            if ranks.first:
                run = {"config": state.config, "manifest_version": data.version, "total_steps": steps}
                write_whole(out / "run.json", canonical(run) + b"\n")
        super().__init__(
            model=model, optimizer=optimizer, loss=loss, stream=stream, config=config, state=state, total_steps=steps,
            device=device, adapters=adapters, ranks=ranks, evaluate=evaluate, at_end=unlimit)  # fmt: skip
        LOG.info(_summary(config, self))


def command(
    config: type[C], name: str, about: str | None, trainer: Callable[[C], Loop] = Trainer
) -> Callable[..., int]:
    """The `main(argv, prog)` of the objective in the module `name`, see `flags.command`: it trains to the end."""

    def main(argv: Sequence[str], prog: str = f"python -m {name}") -> int:
        return finish(trainer(configured(config, prog, about, argv)), prog)

    return flags.started(main, name)


def open_data(config: RunConfig, ranks: Ranks) -> Mixture:
    """Open the packed rows of the run.

    Raises:
        DatakitError: not a packed set, or one for another kind of objective.
    """
    given = (config.manifest,) if isinstance(config.manifest, str) else config.manifest
    manifests: Sequence[Path] = tuple(map(pull_result, given))
    if config.quick.data:
        manifests = [ranks.by_first(lambda: pack_files(config.quick, config.model, Path(config.loop.out)))]
    ranks.by_first(lambda: bool(Mixture.open(manifests, "packed", config.data.verify)))  # fetches and checks files
    data = Mixture.open(manifests, "packed", False, config.data.bin_cache == "memory")
    if (found := data.header.rows_per_unit) != config.rows_per_unit:
        which = "train.dpo takes preferences, train.pretrain and train.sft text and conversations"
        raise InputError(f"{data.name}: has {found} rows per unit, expected {config.rows_per_unit}: {which}")
    return data.unlabelled() if config.every_token else data


def run_factory(*command: str) -> str:
    """Run a command of the factory, which the trainer does not import; returns what it says.

    Raises:
        InputError: it failed; the message is its own.
    """
    done = subprocess.run([sys.executable, "-m", "datakit", *command], capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().removeprefix("datakit: ")
        raise InputError(f"datakit {command[0]}: {said}")
    return done.stderr + done.stdout


def pack_files(config: QuickConfig, model: str, out: Path) -> Path:
    """Pack the files with `datakit pack`, and return the manifest under `out/data`.

    Files that were packed with the same settings before are not packed again.

    Raises:
        UsageError: no tokenizer.
        MissingExtraError: datakit's own dependencies are not installed.
        InputError: `datakit pack` failed; the message is its own.
    """
    tokenizer = config.tokenizer or model
    if not tokenizer:
        raise UsageError("--data needs a tokenizer: name its folder with --tokenizer")
    if missing := [name for name in ("pyarrow", "numba", "tokenizers") if importlib.util.find_spec(name) is None]:
        raise MissingExtraError(f"--data needs {', '.join(missing)}: install datakit's dependencies, or use --manifest")
    folder = out / "data"
    how = ("--tokenizer", tokenizer, "--seq-len", str(config.seq_len), "--output", str(folder))
    LOG.info(f"packing {', '.join(config.data)} into {folder}")
    for said in run_factory("pack", *config.data, *how).splitlines():  # rows kept, rows dropped, reasons
        LOG.info(said)
    return folder / "manifest.json"


def _initial_model(config: RunConfig, data: Mixture, ranks: Ranks) -> CausalLM:
    """The model to start from, on the CPU; with FSDP only rank 0 has weights."""
    if not config.ranks.fsdp:
        return make_model(config, data)
    made: list[CausalLM] = []
    ranks.by_first(lambda: made.append(make_model(config, data)))
    if made:
        return made[0]
    with torch.device("meta"):
        return CausalLM(_model_config(config, data))


def make_model(config: RunConfig, data: Mixture) -> CausalLM:
    """Make or read the model to start from, on the CPU.

    Raises:
        ModelError: tokenizer, vocabulary or length of the `model` folder does not fit the data.
    """
    if config.model:
        from train import weights

        return weights.read_fitting(config.model, data)
    model = CausalLM(_model_config(config, data))
    model.init_weights(torch.Generator().manual_seed(config.loop.seed), config.sizes.zero_init)
    return model


def _on_device(config: RunConfig, model: CausalLM, ranks: Ranks) -> CausalLM:
    """The model on the device of the rank, or with slices of the weights of rank 0."""
    if config.weights_dtype == "bf16":  # adapters stay in fp32, except in slices, which have one dtype
        kept = checkpoint.trained(model) if config.lora.lora_rank and not config.ranks.fsdp else {}
        for name, p in model.named_parameters():
            p.data = p.data if name in kept else p.data.bfloat16()
        model.config = replace(model.config, dtype="bfloat16")
    if config.ranks.fsdp:
        from train.distributed import shard

        shard(ranks, model, precision(config.loop.dtype, ranks.device))
        return model
    return model.to(ranks.device)


def _model_config(config: RunConfig, data: Mixture) -> ModelConfig:
    header = data.header
    rounded = -(-header.vocab_size // VOCAB_UNIT) * VOCAB_UNIT
    if config.model:
        from train import weights

        return weights.read_config(Path(config.model))
    preset = sized(config.sizes, PRESETS[config.preset])
    found = replace(preset, vocab_size=rounded, max_positions=max(preset.max_positions, header.seq_len))
    if config.moe.num_experts:
        found = replace(found, moe=config.moe, qk_norm=True)  # Qwen3-MoE
    if hf.family_of(found) == hf.OWN:
        LOG.info("note: transformers has no model with these options: train.export will refuse it")
        found = replace(found, family=hf.OWN)
    return found


VOCAB_UNIT = 64
"""New vocabularies are multiples of this, for which matrix products are fast (as in nanoGPT)."""


def sized(sizes: SizesConfig, plain: ModelConfig) -> ModelConfig:
    """`plain` with the given sizes and options.

    Raises:
        ConfigError: sizes that no model can have together.
    """
    given = {k: v for k, v in asdict(sizes).items() if v != getattr(SizesConfig(), k) and k != "zero_init"}
    if "num_heads" in given:
        given.setdefault("num_kv_heads", given["num_heads"])
    if given.keys() & {"hidden_size", "num_heads"}:
        width, heads = (given.get(k, asdict(plain)[k]) for k in ("hidden_size", "num_heads"))
        if width % heads:
            raise ConfigError(f"--hidden-size {width} is not a multiple of --num-heads {heads}")
        given["head_dim"] = width // heads
    return replace(plain, **given)


def _summary(config: RunConfig, trainer: Trainer) -> str:
    stream, model, data = trainer.stream, trainer.model, trainer.stream.data
    counts = [None if s.packed.labels is None else len(s.packed.labels) for s in data.sets]
    labels = "every target" if None in counts else f"{sum(filter(None, counts)):,}"
    whole, count = (sum(p.numel() for p in group) for group in (model.parameters(), checkpoint.trained(model).values()))
    adapters = f", {count / 1e6:.2f}M of them trained in adapters" if trainer.adapters else ""
    share, rows = stream.plan.share(0, stream.rank, stream.ranks)
    ranks = f", {stream.ranks} ranks with {len(share)} x {rows} rows a step each" if stream.ranks > 1 else ""
    return (
        f"{whole / 1e6:.1f}M parameters ({config.model or config.preset}){adapters}; "
        f"{len(data.lengths):,} rows with {int(data.lengths.sum()):,} tokens, labels: {labels}; "
        f"{stream.plan.steps_per_epoch:,} steps an epoch, {trainer.total_steps:,} in all; "
        f"{trainer.device.type}, {trainer.precision}, {torch.get_num_threads()} threads{ranks}"
    )
