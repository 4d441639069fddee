"""Built-in chat templates, for tokenizers that bring none. `bos_token` and `eos_token` are the tokenizer's."""

CHATML = """\
{%- if tools -%}
{{ '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' -%}{{ messages[0].content + '\\n\\n' }}{%- endif -%}
{{ '# Tools\\n\\nYou may call these functions:\\n<tools>' }}
{%- for tool in tools -%}{{ '\\n' + (tool | tojson) }}{%- endfor -%}
{{ '\\n</tools>\\n\\nTo call one, answer with\\n<tool_call>\\n{"name": <name>, "arguments": <object>}\\n</tool_call>' }}
{{- '<|im_end|>\\n' -}}
{%- endif -%}
{%- for message in messages -%}
{%- if not (tools and loop.first and message.role == 'system') -%}
{{ '<|im_start|>' + message.role + '\\n' }}
{%- if message.role == 'tool' -%}{{ message.content }}
{%- elif message.role == 'assistant' -%}
{%- generation -%}
{%- if message.reasoning_content -%}{{ '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{%- endif -%}
{{ message.content }}
{%- for call in message.tool_calls or [] -%}
{%- if message.content or not loop.first -%}{{ '\\n' }}{%- endif -%}
{{ '<tool_call>\\n' + (call.function or call) | tojson + '\\n</tool_call>' }}
{%- endfor -%}
{{ '<|im_end|>' }}
{%- endgeneration -%}
{%- else -%}{{ message.content }}
{%- endif -%}
{%- if message.role != 'assistant' -%}{{ '<|im_end|>' }}{%- endif -%}
{{ '\\n' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""

LLAMA3 = """\
{{- bos_token or '' -}}
{%- for message in messages -%}
{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' }}
{%- if message.role == 'assistant' -%}
{%- generation -%}{{ message.content | trim + '<|eot_id|>' }}{%- endgeneration -%}
{%- else -%}{{ message.content | trim + '<|eot_id|>' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif -%}
"""

PLAIN = """\
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{{ 'Assistant: ' }}{%- generation -%}{{ message.content + eos_token }}{%- endgeneration -%}{{ '\\n' }}
{%- elif message.role == 'system' -%}{{ message.content + '\\n' }}
{%- else -%}{{ message.role | capitalize + ': ' + message.content + '\\n' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ 'Assistant: ' }}{%- endif -%}
"""

BUILT_IN = {"chatml": CHATML, "llama3": LLAMA3, "plain": PLAIN}
