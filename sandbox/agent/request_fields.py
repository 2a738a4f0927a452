"""The fields of a request that a command line agent may set, for each API: words for the model, and how it answers.

Any other field is left out. What stands at `api_base` may be a gateway with fields of its own, and those name other
models, other providers, other addresses, plugins and whose money it is.

https://platform.openai.com/docs/api-reference/chat/create, https://platform.openai.com/docs/api-reference/responses,
https://docs.anthropic.com/en/api/messages. Of theirs these are left out too: what a provider would do elsewhere
(`web_search_options`, `mcp_servers`, `container`, `background`), what it keeps (`metadata`, `user`), and what has
another price (`n`, `service_tier`, `speed`, `inference_geo`, `prediction`, `modalities`, cache lifetimes, moderation).
"""

_SAMPLING = ("temperature", "top_p", "top_logprobs")
_OPENAI = ("tools", "tool_choice", "parallel_tool_calls", "prompt_cache_key", "store", "stream")

CHAT = frozenset(
    {
        *("messages", "max_tokens", "max_completion_tokens"),
        *(*_SAMPLING, "frequency_penalty", "presence_penalty", "logit_bias", "logprobs", "seed", "stop"),
        *(*_OPENAI, "functions", "function_call", "response_format", "reasoning_effort", "verbosity"),
    }
)
RESPONSES = frozenset(
    {
        *("input", "instructions", "max_output_tokens"),
        *(*_SAMPLING, *_OPENAI, "stream_options", "text", "reasoning", "include", "truncation"),
    }
)
MESSAGES = frozenset(
    {
        *("messages", "system", "max_tokens"),
        *("temperature", "top_p", "top_k", "stop_sequences", "stream", "thinking"),
        *("tools", "tool_choice", "output_config", "output_format", "cache_control", "context_management"),
    }
)

FUNCTION = frozenset({"name", "description", "parameters", "strict"})
TOOL = frozenset(
    {
        *FUNCTION,
        *("type", "function", "custom", "format", "tools", "defer_loading", "execution"),
        *("input_schema", "input_examples", "eager_input_streaming", "cache_control", "max_characters"),
    }
)
"""Of a tool. A gateway takes other fields for tools that a provider runs (`googleSearch`, `urlContext`)."""
REASONING = frozenset({"effort", "summary", "generate_summary", "context"})
"""Of `reasoning` in OpenAI's Responses: a mode may run a model several times."""
EDITS = "clear_"
"""How those of Anthropic's context edits begin that only leave something out; others have the model write."""
