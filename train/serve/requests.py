"""The bodies of requests, as OpenAI's API names them; vLLM's names are understood where OpenAI has none.

A field that nobody here knows is ignored, as clients send many. A known field that would change the answer and is not
implemented is refused.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, field_validator

MOST_CHOICES = 16
Seed = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]
Ids = Annotated[list[Annotated[StrictInt, Field(ge=0, lt=2**31)]], Field(min_length=1)]
Stop = Annotated[list[Annotated[StrictStr, Field(min_length=1, max_length=256)]], Field(max_length=16)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class Body(BaseModel):
    """What all bodies have."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)
    model: StrictStr = Field("", description="name of the served model; empty: the one that there is")


class TextPart(BaseModel):
    """A part of a message; this server reads text alone."""

    type: Literal["text"]
    text: StrictStr


class CalledFunction(BaseModel):
    """The function of a tool call."""

    name: StrictStr
    arguments: StrictStr = Field("{}", description="JSON text")


class ToolCall(BaseModel):
    """An earlier call of a tool."""

    id: StrictStr = ""
    type: Literal["function"] = "function"
    function: CalledFunction


class Message(BaseModel):
    """A turn of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: StrictStr | list[TextPart] | None = None
    name: StrictStr | None = None
    reasoning_content: StrictStr | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: StrictStr | None = None

    def plain(self) -> dict[str, Any]:
        """The message as chat templates read it."""
        parts = self.content if isinstance(self.content, list) else []
        content = "\n".join(p.text for p in parts) if parts else self.content or ""
        given = self.model_dump(exclude_none=True, include={"name", "reasoning_content", "tool_calls", "tool_call_id"})
        role = "system" if self.role == "developer" else self.role
        return {"role": role, "content": content} | given


class Function(BaseModel):
    """The description of a function."""

    model_config = ConfigDict(extra="allow")
    name: Annotated[StrictStr, Field(min_length=1, max_length=64, pattern=r"^[a-zA-Z0-9_.-]+$")]
    description: StrictStr | None = None
    parameters: dict[str, Any] | None = None


class Tool(BaseModel):
    """A tool that the model may call."""

    type: Literal["function"]
    function: Function


class NamedFunction(BaseModel):
    """The name of a function."""

    name: StrictStr


class NamedTool(BaseModel):
    """The tool that the model must call."""

    type: Literal["function"]
    function: NamedFunction


class ResponseFormat(BaseModel):
    """Only plain text; JSON by schema would need guided generation."""

    type: Literal["text"]


class StreamOptions(BaseModel):
    """Options of streaming."""

    include_usage: StrictBool = False


class Generation(Body):
    """Sampling and length."""

    max_tokens: Annotated[StrictInt, Field(ge=1, lt=2**31)] | None = None
    temperature: Annotated[Number, Field(ge=0, le=10)] | None = None
    top_p: Annotated[Number, Field(gt=0, le=1)] | None = None
    top_k: Annotated[StrictInt, Field(ge=-1, lt=2**31)] | None = Field(None, description="0 or -1: all tokens")
    min_p: Annotated[Number, Field(ge=0, le=1)] | None = None
    presence_penalty: Annotated[Number, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[Number, Field(ge=-2, le=2)] | None = None
    repetition_penalty: Annotated[Number, Field(gt=0, le=10)] | None = None
    logit_bias: (
        dict[Annotated[str, Field(pattern=r"^[0-9]{1,9}$")], Annotated[Number, Field(ge=-100, le=100)]] | None
    ) = None
    seed: Seed | None = Field(None, description="the same seed gives the same answer")
    n: Annotated[StrictInt, Field(ge=1, le=MOST_CHOICES)] | None = Field(None, description="number of answers")
    stop: Stop | StrictStr | None = None
    stop_token_ids: Ids | None = None
    ignore_eos: StrictBool = False
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None

    @property
    def stops(self) -> list[str]:
        """The stop strings."""
        return [s for s in ([self.stop] if isinstance(self.stop, str) else self.stop or []) if s]


class ChatRequest(Generation):
    """`POST /v1/chat/completions`."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=10_000)]
    max_completion_tokens: Annotated[StrictInt, Field(ge=1, lt=2**31)] | None = None
    logprobs: StrictBool | None = None
    top_logprobs: Annotated[StrictInt, Field(ge=0, le=20)] | None = None
    tools: Annotated[list[Tool], Field(max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: StrictBool | None = None
    response_format: ResponseFormat | None = None
    chat_template_kwargs: dict[str, Any] | None = None


class CompletionRequest(Generation):
    """`POST /v1/completions`."""

    prompt: (
        StrictStr
        | Ids
        | Annotated[list[StrictStr], Field(min_length=1, max_length=64)]
        | Annotated[list[Ids], Field(min_length=1, max_length=64)]
    )
    logprobs: Annotated[StrictInt, Field(ge=0, le=20)] | None = None
    echo: StrictBool | None = None
    suffix: None = Field(None, description="not implemented")
    best_of: Annotated[StrictInt, Field(ge=1, le=MOST_CHOICES)] | None = Field(None, description="only equal to n")

    @field_validator("best_of")
    @classmethod
    def _as_many_as_n(cls, value: int | None, info: Any) -> int | None:
        if value is not None and value != (info.data.get("n") or 1):
            raise ValueError("best_of is only implemented where it equals n")
        return value


class TokenizeRequest(Body):
    """`POST /v1/tokenize`, as vLLM has it: the ids of a text, or of a conversation with its template."""

    prompt: StrictStr | None = None
    messages: Annotated[list[Message], Field(min_length=1)] | None = None
    tools: list[Tool] | None = None
    add_special_tokens: StrictBool = Field(False, description="put the tokenizer's first token before a text")
    return_token_strs: StrictBool = False
    chat_template_kwargs: dict[str, Any] | None = None


class DetokenizeRequest(Body):
    """`POST /v1/detokenize`, as vLLM has it."""

    tokens: list[Annotated[StrictInt, Field(ge=0, lt=2**31)]]
