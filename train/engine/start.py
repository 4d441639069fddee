"""From a configuration to a run that can begin: data, model, optimizer and state that fit each other, or a refusal."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import torch

from datakit.config import canonical, option, resolved, section, sha256_file
from datakit.errors import ConfigError, InputError, MissingExtraError, ModelError, UsageError
from datakit.manifest import write_whole
from datakit.pack.chat import ChatTokenizer
from train.data.batches import DataConfig, StepStream
from train.data.packed import Mixture, PackedSet
from train.engine import checkpoint, flags, untie
from train.engine.device import allow_tf32, limit_memory, precision, usable_device
from train.engine.distributed import Ranks, RanksConfig, shard
from train.engine.evaluator import Watch, WatchConfig
from train.engine.log import TrackConfig
from train.engine.loop import LoopConfig, Loss, Trainer
from train.engine.optim import OptimConfig, Optimizers, WeightAverage, make_optimizer, peak_rate
from train.model import hf, lora
from train.model.decoder import PRESETS, CausalLM, ModelConfig, ModelOptions
from train.model.experts import MoeConfig
from train.model.lora import Adapters, LoraConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class QuickConfig:
    """What to train on, instead of a manifest."""

    data: tuple[str, ...] = option(
        (), "files of `messages`, `text`, pairs or `ids` (JSONL and all that datakit reads), packed now"
    )
    tokenizer: str = option("", "tokenizer folder for --data; none: the one of --init")
    seq_len: int = option(512, "targets in a row that --data is packed into")

    def __post_init__(self) -> None:
        if self.seq_len < 1:
            raise ConfigError(f"seq_len must be at least 1, found {self.seq_len}")


def packed(config: QuickConfig, init: str, out: Path) -> Path:
    """The manifest of the packed files, under `out/data`.

    Raises:
        UsageError: no tokenizer.
        MissingExtraError: datakit's own dependencies are not installed.
        InputError: the files cannot be packed; datakit's message says why.
    """
    tokenizer = config.tokenizer or init
    if not tokenizer:
        raise UsageError("--data needs the tokenizer to pack with: name its folder with --tokenizer")
    if missing := [name for name in ("pyarrow", "numba", "tokenizers") if importlib.util.find_spec(name) is None]:
        raise MissingExtraError(
            f"--data packs files, which needs {', '.join(missing)}: install datakit, or use --manifest"
        )
    place = out / "data"
    command = [sys.executable, "-m", "datakit", "pack", *config.data, "--tokenizer", tokenizer]
    command += ["--seq-len", str(config.seq_len), "--output", str(place)]
    print(f"[train] packing {', '.join(config.data)} into {place}", flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"--data {','.join(config.data)}: {done.stderr.strip().removeprefix('datakit: ')}")
    print(done.stderr + done.stdout, end="", flush=True)  # what was kept, dropped and why
    return place / "manifest.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunConfig:
    """One training run; an objective with options of its own extends it."""

    rows_per_unit: ClassVar[int] = 1
    """Neighbouring rows that the objective needs together."""
    trained_rate: ClassVar[float] = 1e-5
    """Peak learning rate for trained weights where the user named none; minimind's for fine-tuning."""
    trains_ahead: ClassVar[bool] = False
    """Whether the objective has a loss for the tokens ahead of the next."""

    manifest: str | tuple[str, ...] = option(
        "", "the pack manifest to train on, such as manifests/mydata/pack.json; several are mixed, see --weights"
    )
    quick: QuickConfig = section(QuickConfig)
    preset: Literal["tiny", "26m", "64m", "104m"] = option("26m", "size of a model that starts from random weights")
    init: str = option("", "Hugging Face folder, checkpoint or run whose weights to start from instead of a preset")
    data: DataConfig = section(DataConfig)
    optim: OptimConfig = section(OptimConfig)
    loop: LoopConfig = section(LoopConfig)
    lora: LoraConfig = section(LoraConfig)
    watch: WatchConfig = section(WatchConfig)
    track: TrackConfig = section(TrackConfig)
    qk_norm: bool = option(False, "a preset's queries and keys are normalised a head (Qwen3)")
    moe: MoeConfig = section(MoeConfig)
    options: ModelOptions = section(ModelOptions)
    ranks: RanksConfig = section(RanksConfig)

    def __post_init__(self) -> None:
        if self.ranks.fsdp and self.options.untie_at:
            raise ConfigError(
                "untie_at: with fsdp the head and the embeddings are sliced as one matrix, which cannot become two "
                "during a run; leave one of both options"
            )
        if self.init and (self.qk_norm or self.options.changed() or self.options.zero_init or self.moe.num_experts):
            raise UsageError(
                "options of the model are for random weights: the one of --init has its own in config.json"
            )
        if self.options.mtp_depth and not self.trains_ahead:
            raise ConfigError(
                "mtp_depth: this objective has no loss for tokens ahead; train.pretrain and train.sft have"
            )
        if self.lora.lora_rank and not self.init:
            raise UsageError("name the model that adapters are trained for with --init: random weights need training")
        if bool(self.manifest) == bool(self.quick.data):
            raise UsageError(
                "name a pack manifest with --manifest, such as manifests/mydata/pack.json, or files with --data"
            )

    @property
    def manifests(self) -> tuple[Path, ...]:
        """Where they lie, one or several."""
        return tuple(map(Path, (self.manifest,) if isinstance(self.manifest, str) else self.manifest))


C = TypeVar("C", bound=RunConfig)
LABEL_FILL = 16
"""Labels are filled up to sixteenths of the positions. Each number of them would need kernels of its own, which oneDNN
keeps: half a megabyte each."""


def configured(config: type[C], prog: str, about: str | None, argv: Sequence[str]) -> C:
    """The configuration on the command line; a resumed run's own values are its defaults.

    Raises:
        ConfigError: a value that makes no sense.
    """
    values = flags.given(config, f"python -m {prog}", (about or "").split("\n")[0], argv)
    loop = values.get("loop", {})
    if loop.get("resume"):
        values = flags.merged(earlier_values(Path(loop.get("out", "out/run"))), values)
    built = flags.built(config, values)
    return replace(built, init=str(checkpoint.newest_of_run(Path(built.init)))) if built.init else built


def earlier_values(out: Path) -> dict[str, Any]:
    """What the run in `out` was started with, as the defaults of its resumption; empty where there is none."""
    try:
        values: dict[str, Any] = json.loads((out / "run.json").read_text(encoding="utf-8"))["config"]
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as e:
        raise InputError(f"{out / 'run.json'}: unreadable ({e!r}); remove it and give all options again") from None
    values["loop"] = {k: v for k, v in values["loop"].items() if k not in ("resume", "stop_at")}
    return values


def open_data(config: RunConfig) -> Mixture:
    """The run's packed rows.

    Raises:
        DatakitError: not a packed set, or one for another kind of objective.
    """
    manifests: Sequence[Path] = config.manifests
    if config.quick.data:
        ranks = Ranks.join(usable_device(config.loop.device), config.ranks)
        manifests = [ranks.by_first(lambda: packed(config.quick, config.init, Path(config.loop.out)))]
    data = Mixture.open(manifests, in_memory=config.data.data_cache == "memory")
    if (found := data.header.rows_per_unit) != config.rows_per_unit:
        raise InputError(
            f"{data.name}: holds {found} rows a unit (task {data.header.task!r}), and this objective needs "
            f"{config.rows_per_unit}: preference pairs are for train.dpo, text and conversations for train.pretrain "
            f"and train.sft"
        )
    return data


def prepare(config: RunConfig, loss: Loss, data: Mixture | None = None, model: CausalLM | None = None) -> Trainer:
    """Everything a run needs, checked against each other; prints what it is about to do.

    `data` are the manifest's rows, `model` is what to train, where the objective has opened or made them already.

    Raises:
        DatakitError: manifest, model and checkpoint do not fit each other, or `out` holds another run.
    """
    device, out = usable_device(config.loop.device), Path(config.loop.out)
    ranks = Ranks.join(device, config.ranks)
    if config.loop.threads:
        torch.set_num_threads(config.loop.threads)
    if config.loop.memory_limit:
        limit_memory(device, config.loop.memory_limit)
    if config.loop.tf32:
        allow_tf32(device)
    data = data or open_data(config)
    torch.manual_seed(config.loop.seed)
    model = model or _dealt(config, data, ranks)
    if model.ahead and not config.trains_ahead:
        print("[train] note: this objective has no loss for tokens ahead; the layers for them are left out", flush=True)
        model.leave_out_ahead()
    adapters = _adapters(config, model)
    model = _placed(config, model, ranks)
    rate = lora.TRAINED_RATE if adapters else config.trained_rate
    lr = peak_rate(config.optim, model.config.hidden_size, rate if config.init else None)
    config = replace(config, optim=replace(config.optim, lr=lr))
    optimizer = make_optimizer(model, config.optim)
    average = WeightAverage(model, config.optim.ema_decay) if config.optim.ema_decay else None
    stream = StepStream(
        data,
        config.data,
        config.loop.seed,
        rank=ranks.rank,
        ranks=ranks.size,
        pin=device.type == "cuda",
        label_fill=LABEL_FILL,
    )
    watch = _watch(config, data, model, precision(config.loop.dtype, device))
    steps = config.loop.steps or stream.plan.first_step_of(config.loop.epochs)
    untie_step = untie.first_step(config.options.untie_at, steps, model, adapters is not None)
    if config.optim.head_lr_ratio != 1 and model.config.tied_embeddings and not untie_step:
        raise ConfigError("head_lr_ratio: the output head is the embedding matrix here; it moves by embed_lr_ratio")
    state = checkpoint.State(
        step=0, task=data.header.task, manifest_version=data.version, tokenizer=data.tokenizer,
        order=config.data.deciding() | {"seed": config.loop.seed}, config=resolved(config),
        stop_ids=_stop_ids(data), base_sha256=adapters.base_sha256 if adapters else "",
    )  # fmt: skip
    ranks.agree({"data": data.version, "order": state.order, "steps": steps, "optimizer": resolved(config.optim)})
    state = _resume(config, ranks, state, model, optimizer, average) if config.loop.resume else _fresh(out, state)
    if ranks.first:
        run = {"config": state.config, "manifest_version": data.version, "total_steps": steps}
        write_whole(out / "run.json", canonical(run) + b"\n")
    trainer = Trainer(
        model=model, optimizer=optimizer, loss=loss, stream=stream, loop=config.loop, optim=config.optim,
        state=state, total_steps=steps, device=device, adapters=adapters, average=average, ranks=ranks,
        watch=watch, track=config.track,
        untie_step=untie_step,
    )  # fmt: skip
    print(_opening(config, trainer), flush=True)
    return trainer


def _watch(config: RunConfig, data: Mixture, model: CausalLM, dtype: str) -> Watch | None:
    """The evaluations that the run asks for."""
    if not config.watch.eval_every:
        return None
    return Watch.of(config.watch, data, config.data, dtype, model.config.max_positions)


def _stop_ids(data: Mixture) -> tuple[int, ...]:
    """The tokens at which an answer ends, for whoever generates from the checkpoint."""
    if all(s.packed.labels is None for s in data.sets) or not data.tokenizer_files:
        return ()
    return tuple(ChatTokenizer.load(data.tokenizer_files[0].parent).stop_ids())


def _adapters(config: RunConfig, model: CausalLM) -> Adapters | None:
    """Attach the adapters that the run asks for."""
    if not config.lora.lora_rank:
        return None
    lora.attach(model, config.lora, torch.Generator().manual_seed(config.loop.seed))
    return Adapters(config.lora, Path(config.init), hf.fingerprint(Path(config.init)))


def _dealt(config: RunConfig, data: Mixture, ranks: Ranks) -> CausalLM:
    """The model to start from, on the CPU; if it is to be sliced, rank 0's alone has weights."""
    if not config.ranks.fsdp:
        return make_model(config, data)
    made: list[CausalLM] = []
    ranks.by_first(lambda: made.append(make_model(config, data)))
    if made:
        return made[0]
    with torch.device("meta"):
        return CausalLM(_size(config, data))


def _placed(config: RunConfig, model: CausalLM, ranks: Ranks) -> CausalLM:
    """The model on the rank's device, with rank 0's weights, or slices of them."""
    if config.ranks.fsdp:
        shard(ranks, model)
        return model
    model = model.to(ranks.device)
    ranks.share(model)
    return model


def make_model(config: RunConfig, data: PackedSet | Mixture) -> CausalLM:
    """The model to start from, on the CPU.

    Raises:
        ModelError: an `init` folder whose tokenizer, vocabulary or length does not fit the data.
    """
    if config.init:
        folder = Path(config.init)
        model = lora.read(folder)
        check_fits(folder, model, data)
        return model
    model = CausalLM(_size(config, data))
    model.init_weights(torch.Generator().manual_seed(config.loop.seed))
    return model


def _size(config: RunConfig, data: PackedSet | Mixture) -> ModelConfig:
    if config.init:
        return lora.read_config(Path(config.init))
    preset, header = PRESETS[config.preset], data.header
    return replace(
        preset, vocab_size=header.vocab_size, max_positions=max(preset.max_positions, header.seq_len),
        qk_norm=preset.qk_norm or config.qk_norm, moe=config.moe, options=config.options,
    )  # fmt: skip


def check_fits(folder: Path, model: CausalLM, data: PackedSet | Mixture) -> None:
    """Refuse data that the model in `folder` was not made for.

    A model may have more rows of embeddings than the tokenizer has tokens, if it has that very tokenizer.

    Raises:
        ModelError: naming both values.
    """
    header, file = data.header, folder / "tokenizer.json"
    found = sha256_file(file) if file.is_file() else None
    expected = data.tokenizer.get("sha256")
    if found is not None and expected is not None and found != expected:
        raise ModelError(
            f"{data.manifest} was tokenized with a tokenizer of sha256 {expected}, but {file} has {found}: "
            f"tokenize the data with the model's tokenizer"
        )
    have, need = model.config.vocab_size, header.vocab_size
    if have < need or (have != need and found is None):
        raise ModelError(f"{data.manifest} has a vocabulary of {need} tokens, but the model in {folder} one of {have}")
    if model.config.max_positions < header.seq_len:
        raise ModelError(
            f"{data.manifest} holds sequences of up to {header.seq_len} tokens, but the model in {folder} was made for "
            f"{model.config.max_positions}: pack with a smaller --seq-len"
        )


def _fresh(out: Path, state: checkpoint.State) -> checkpoint.State:
    if found := checkpoint.steps(out / "checkpoints"):
        raise UsageError(
            f"{out} already holds a run, up to {found[0].name}: add --resume to go on with it, or choose another --out"
        )
    return state


def _resume(
    config: RunConfig,
    ranks: Ranks,
    state: checkpoint.State,
    model: CausalLM,
    optimizer: Optimizers,
    average: WeightAverage | None,
) -> checkpoint.State:
    """Put back the newest checkpoint, if there is one and it fits."""
    damaged: list[str] = []
    found = ranks.by_first(lambda: checkpoint.newest(Path(config.loop.out) / "checkpoints", damaged))
    for problem in damaged:
        print(f"[train] passed over a damaged checkpoint: {problem}", flush=True)
    if found is None:
        print(f"[train] nothing to resume in {config.loop.out}: starting from the first step", flush=True)
        return state
    place, old = found
    _check_same(place, old, state)
    if (was := old.config["loop"]["steps"]) != config.loop.steps:
        print(
            f"[train] note: --steps was {was} and is {config.loop.steps} now, so the learning rate takes another "
            f"course than it would in one run of {config.loop.steps} (--stop-at ends a run early without changing it)",
            flush=True,
        )
    if untie.is_untied(place, model):
        untie.untie(model, optimizer, config.optim, average)
    checkpoint.restore(place, model, optimizer)
    if average:
        average.restore(place)
    print(f"[train] resumed from {place}", flush=True)
    return replace(state, step=old.step, loop=old.loop)


def _check_same(place: Path, old: checkpoint.State, new: checkpoint.State) -> None:
    """Refuse to go on with anything that changes which rows make which step, or what their ids mean."""
    pairs: list[tuple[str, Any, Any]] = [("manifest version", old.manifest_version, new.manifest_version)]
    pairs += [(f"tokenizer {k}", old.tokenizer.get(k), v) for k, v in new.tokenizer.items()]
    order = DataConfig().deciding() | old.order  # an option younger than the checkpoint had its default
    pairs += [(k, order.get(k), v) for k, v in new.order.items()]
    pairs += [("a LoRA base of sha256", old.base_sha256, new.base_sha256)]
    pairs += [("the optimizer", *(s.config.get("optim", {}).get("optimizer", "adamw") for s in (old, new)))]
    for name, was, now in pairs:
        if was != now:
            raise ModelError(
                f"{place} was trained with {name} {was!r}, and this run has {now!r}: resume with the same, or start "
                f"another run from its weights with --init {place} and another --out"
            )


def _opening(config: RunConfig, trainer: Trainer) -> str:
    data, model = trainer.stream.data, trainer.model
    labels = "every target" if data.labels is None else f"{data.labels:,}"
    return (
        f"[train] {model.num_parameters() / 1e6:.1f}M parameters ({config.init or config.preset}){_trained(trainer)}; "
        f"{len(data.lengths):,} rows with {int(data.lengths.sum()):,} tokens, labels: {labels}; "
        f"{trainer.stream.plan.steps_per_epoch:,} steps {'in the first' if config.data.batch_size_schedule else 'an'} "
        f"epoch, {trainer.total_steps:,} in all; "
        f"{trainer.device.type}, {trainer.precision}, {torch.get_num_threads()} threads{_processes(trainer)}"
    )


def _processes(trainer: Trainer) -> str:
    ranks, split = trainer.ranks.size, trainer.stream.split(trainer.state.step)
    if ranks == 1:
        return ""
    each = split.grad_accum * split.pieces // ranks
    return f", {ranks} ranks with {each} x {split.piece_rows} rows a step each"


def _trained(trainer: Trainer) -> str:
    if not trainer.adapters:
        return ""
    count = sum(p.numel() for p in lora.trained(trainer.model).values())
    return f", of which {count / 1e6:.2f}M in adapters of rank {trainer.adapters.config.lora_rank} are trained"
