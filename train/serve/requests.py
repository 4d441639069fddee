"""The bodies of requests, as OpenAI's API names them; vLLM's names are understood where OpenAI has none.

A field that is not known is ignored, because clients send many. A known field that would change the answer and is not
implemented is refused.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

Count = Annotated[StrictInt, Field(ge=1, lt=2**31)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Penalty = Annotated[Number, Field(ge=-2, le=2)]
Top = Annotated[StrictInt, Field(ge=0, le=20)]
Ids = Annotated[list[Annotated[StrictInt, Field(ge=0, lt=2**31)]], Field(min_length=1)]
Stops = Annotated[list[Annotated[StrictStr, Field(max_length=256)]], Field(max_length=16)]
Bias = dict[Annotated[str, Field(pattern="^[0-9]{1,9}$")], Annotated[Number, Field(ge=-100, le=100)]]


class TextPart(BaseModel):
    """A part of a message; this server reads text alone."""

    type: Literal["text"]
    text: StrictStr


class ChatMessage(BaseModel):
    """A turn of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: StrictStr | list[TextPart] | None = None
    name: StrictStr | None = None
    reasoning_content: StrictStr | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: StrictStr | None = None

    def plain(self) -> dict[str, Any]:
        """The message as chat templates read it."""
        content = self.content or ""
        text = content if isinstance(content, str) else "".join(part.text for part in content)  # as in ingest
        given = self.model_dump(exclude_none=True, exclude={"role", "content"})
        return {"role": "system" if self.role == "developer" else self.role, "content": text} | given


class Function(BaseModel):
    """The description of a function; `parameters` is a JSON schema."""

    model_config = ConfigDict(extra="allow")
    name: Annotated[StrictStr, Field(pattern="^[a-zA-Z0-9_.-]{1,64}$")]
    description: StrictStr | None = None
    parameters: dict[str, Any] | None = None


class Tool(BaseModel):
    """A tool that the model may call."""

    type: Literal["function"]
    function: Function


class Generation(BaseModel):
    """What all requests have: model, sampling and length."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)
    model: StrictStr = Field("", description="name of the served model; empty: the one that there is")
    max_tokens: Count | None = None
    temperature: Annotated[Number, Field(ge=0, le=10)] | None = None
    top_p: Annotated[Number, Field(gt=0, le=1)] | None = None
    top_k: Annotated[StrictInt, Field(ge=-1, lt=2**31)] | None = Field(None, description="0 or -1: all tokens")
    min_p: Annotated[Number, Field(ge=0, le=1)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repetition_penalty: Annotated[Number, Field(gt=0, le=10)] | None = None
    logit_bias: Bias | None = None
    seed: Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)] | None = None
    n: Annotated[StrictInt, Field(ge=1, le=16)] | None = Field(None, description="number of answers")
    stop: Stops | StrictStr | None = None
    stop_token_ids: Ids | None = None
    ignore_eos: StrictBool = False
    stream: StrictBool | None = None
    stream_options: dict[str, Any] | None = None


class ChatRequest(Generation):
    """`POST /v1/chat/completions`."""

    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    max_completion_tokens: Count | None = None
    logprobs: StrictBool | None = None
    top_logprobs: Top | None = None
    tools: Annotated[list[Tool], Field(max_length=128)] | None = None
    tool_choice: Literal["none", "auto"] | None = Field(None, description="calls are not forced")
    parallel_tool_calls: Literal[True] | None = None
    response_format: dict[Literal["type"], Literal["text"]] | None = Field(None, description="JSON is not forced")
    chat_template_kwargs: dict[str, Any] | None = None


class CompletionRequest(Generation):
    """`POST /v1/completions`; echo, suffix and best_of are not implemented."""

    prompt: StrictStr | Ids | Annotated[list[StrictStr | Ids], Field(min_length=1, max_length=64)]
    logprobs: Top | None = None
    echo: Literal[False] | None = None
    suffix: None = None
    best_of: Literal[1] | None = None


class ErrorBody(BaseModel):
    """The body of every error: `message`, `type`, `param` and `code`."""

    error: dict[str, str | None]
