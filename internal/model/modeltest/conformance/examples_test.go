package conformance_test

import (
	"net/http"
	"slices"
	"strings"
)

// examples has one or more for each rule with a check.
func examples() []example {
	return slices.Concat(examplesOfOpenAI(), examplesOfAnthropic(), examplesOfGoogle(), examplesOfBedrock(), examplesOfOthers())
}

// ofKind is a request with a kind of thinking.
func ofKind(kind string) object { return object{"thinking": object{"type": kind}} }

// thinkingBy is a request to Gemini with a configuration of thinking.
func thinkingBy(config object) object {
	return object{"generationConfig": object{"thinkingConfig": config}}
}

// effort is a request with an effort in chat completions.
func effort(value string) object { return object{"reasoning_effort": value} }

// reasoningEffort is a request with an effort in Responses.
func reasoningEffort(value string) object { return object{"reasoning": object{"effort": value}} }

// budget is a request with enabled thinking.
func budget() object { return object{"thinking": object{"type": "enabled", "budget_tokens": 2000}} }

// optional25 is a schema with 25 properties that are not required.
func optional25() string {
	var properties []string
	for i := range 25 {
		properties = append(properties, `"p`+string(rune('a'+i))+`":{"type":"string"}`)
	}
	return `{"type":"object","additionalProperties":false,"properties":{` + strings.Join(properties, ",") + "}}"
}

// examplesOfOpenAI are those of its rules.
func examplesOfOpenAI() []example {
	return []example{
		{rule: "openai-chat-tools", at: completions, tools: true, good: effort("none"), bad: object{}, text: chatTools},
		{rule: "openai-chat-tools-never", at: completions.of("gpt-6.2-sol"), good: object{}, bad: object{"tools": []any{object{"type": "function", "function": object{"name": "f"}}}},
			text: strings.Replace(chatTools, "gpt-6-sol", "gpt-6.2-sol", 1)},
		{rule: "openai-chat-tools-5.4", at: completions.of("gpt-5.4"), tools: true, bad: effort("low"),
			text: "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead."},
		{rule: "openai-temperature", at: completions, good: object{"temperature": 1}, bad: object{"temperature": 0.2}, text: "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported."},
		{rule: "openai-temperature", at: completions, good: object{"temperature": 0.2, "reasoning_effort": "none"}, bad: object{"temperature": 0.2}, text: "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported."},
		{rule: "openai-responses-temperature", at: responses, good: object{"temperature": 0.2, "reasoning": object{"effort": "none"}}, bad: object{"temperature": 0.2}, text: "Unsupported parameter: 'temperature' is not supported with this model."},
		{rule: "openai-sampling", at: completions, good: object{"top_p": 0.5, "reasoning_effort": "none"}, bad: object{"top_p": 0.5}, text: "Unsupported parameter: 'top_p' is not supported with this model."},
		{rule: "openai-max-tokens", at: completions, good: object{"max_completion_tokens": 9}, bad: object{"max_tokens": 9}, text: "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."},
		{rule: "other-max-tokens", at: deepseek, good: object{"max_tokens": 9}, bad: object{"max_completion_tokens": 9}, text: "max_completion_tokens is not what this server documents; max_tokens is"},
		{rule: "openai-stop", at: completions.of("o3"), bad: object{"stop": []string{"."}}, text: "Unsupported parameter: 'stop' is not supported with this model."},
		{rule: "openai-effort-chat", at: completions.of("gpt-5.5"), good: effort("xhigh"), bad: effort("minimal"),
			text: "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: 'none', 'low', 'medium', 'high', 'xhigh'."},
		{rule: "openai-effort-old", at: completions.of("gpt-5-mini"), good: effort("minimal"), bad: effort("none"),
			text: "Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'minimal', 'low', 'medium', 'high'."},
		{rule: "openai-effort", at: responses, good: reasoningEffort("max"), bad: reasoningEffort("minimal"),
			text: "Unsupported value: 'minimal' is not supported with the 'gpt-6-sol' model. Supported values are: 'none', 'low', 'medium', 'high', 'xhigh', 'max'."},
		{rule: "openai-effort-always", at: responses.of("gpt-6-astra"), good: reasoningEffort("low"), bad: reasoningEffort("none"),
			text: "Unsupported value: 'none' is not supported with the 'gpt-6-astra' model. Supported values are: 'low', 'medium', 'high', 'xhigh', 'max'."},
		{rule: "openai-cache-ttl", at: completions, good: object{"prompt_cache_options": object{"ttl": "30m"}}, bad: object{"prompt_cache_options": object{"ttl": "12h"}}, text: "Unsupported value: '12h' is not supported for prompt_cache_options.ttl in chat completions."},
		{rule: "openai-responses-results", at: responses, tools: true, turns: 2, before: unanswered, text: "No tool output found for function call "},
		{rule: "openai-chat-results", at: completions.of("gpt-4.1"), tools: true, turns: 2, before: unanswered, text: "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_"},
		{rule: "openai-encrypted", at: responses, tools: true, turns: 2, before: foreign(rawClient{name: "azure", wire: "responses", model: "gpt-6-sol"}), text: unverified},
		{rule: "openai-encrypted", at: responses, tools: true, turns: 2, before: func(p *rawClient) { p.header = http.Header{"Authorization": {"Bearer of another account"}} }, text: unverified},
		{rule: "openai-carry-altered", at: responses, tools: true, change: alter, text: unverified},
		{rule: "openai-carry-lost", at: responses, tools: true, change: lose, text: "carry-over: reasoning of input.1 is lost: the items of an answer must come back in their order"},
		{rule: "openai-carry-lost", at: responses, tools: true, change: reverse, text: "carry-over: commentary of input.2 is reordered: the items of an answer must come back in their order"},
		{rule: "openai-carry-turns", at: responses, scenario: "answer", turns: 2, change: lose, text: "carry-over: reasoning of input.1 is lost: the items of an answer must come back in their order"},
		{rule: "openai-phase", at: responses.of("gpt-5.5"), scenario: "phase", turns: 2, change: func(list []any) []any {
			for _, v := range list {
				delete(v.(object), "phase")
			}
			return list
		}, text: "carry-over: the message at input.2 has the phase '', which is not the phase it was sent with"},
		{rule: "openai-compaction", at: responses, scenario: "compaction", turns: 2, change: func(l []any) []any { return l[1:] }, text: "carry-over: compaction of input.1 is lost: a compaction item must come back unchanged, before what follows it"},
		{rule: "openai-unknown", at: responses, scenario: "unknown", turns: 2, change: func(l []any) []any { l[1].(object)["parts"] = 7; return l }, text: "carry-over: unknown of input.2 is altered: the items of an answer must come back in their order"},
	}
}

// examplesOfAnthropic are those of its rules.
func examplesOfAnthropic() []example {
	return []example{
		{rule: "anthropic-version", at: opus, broken: http.Header{"Anthropic-Version": {"2022-01-01"}}, text: `anthropic-version: "2022-01-01" is not a valid version`},
		{rule: "anthropic-version-required", at: opus, broken: http.Header{"Anthropic-Version": nil}, text: "anthropic-version: header is required"},
		{rule: "anthropic-orphans", at: opus, tools: true, turns: 2, before: orphaned, text: "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_"},
		{rule: "openai-responses-orphans", at: responses, tools: true, turns: 2, before: orphaned, text: "No tool call found for function call output with call_id call_"},
		{rule: "anthropic-version-sampling", at: sonnet, good: object{"temperature": 0.2}, broken: http.Header{"Anthropic-Version": {"2026-10-21"}}, bad: object{"temperature": 0.2}, text: "temperature: Extra inputs are not permitted"},
		{rule: "anthropic-beta-binding", at: opus, header: http.Header{"Anthropic-Beta": {"a, thinking-binding-controls-2026-08-01"}}, good: object{"thinking": object{"type": "adaptive", "block_binding": object{"prefix_mismatch_behavior": "error"}}},
			bad: object{"thinking": object{"type": "adaptive", "block_binding": object{"prefix_mismatch_behavior": "error"}}}, text: "thinking.adaptive.block_binding: Extra inputs are not permitted"},
		{rule: "anthropic-beta-context", at: opus, header: http.Header{"Anthropic-Beta": {"context-management-2025-06-27"}}, good: object{"context_management": object{}}, bad: object{"context_management": object{}}, text: "context_management: Extra inputs are not permitted"},
		{rule: "anthropic-beta-budget", at: opus, bad: object{"output_config": object{"task_budget": object{}}}, text: "output_config.task_budget: Extra inputs are not permitted"},
		{rule: "anthropic-beta-fallbacks", at: opus, bad: object{"fallbacks": []any{}}, text: "fallbacks: Extra inputs are not permitted"},
		{rule: "anthropic-max-tokens-required", at: opus, bad: object{"max_tokens": nil}, text: "max_tokens: Field required"},
		{rule: "anthropic-max-tokens", at: opus, good: object{"max_tokens": 128000}, bad: object{"max_tokens": 200000}, text: "max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens for claude-opus-5-5"},
		{rule: "anthropic-max-tokens-default", at: opus, good: object{"max_tokens": 64000}, bad: object{"max_tokens": 4096}, text: "max_tokens: 4096: thinking counts into it, so that answers end early"},
		{rule: "anthropic-max-tokens-4.5", at: opus.of("claude-haiku-4-5-20251001"), good: object{"max_tokens": 64000}, bad: object{"max_tokens": 128000}, text: "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens for claude-haiku-4-5-20251001"},
		{rule: "anthropic-sampling", at: opus, bad: object{"temperature": 0.2}, text: temperature},
		{rule: "anthropic-forced-choice", at: opus, tools: true, good: object{"tool_choice": object{"type": "auto"}}, bad: object{"tool_choice": object{"type": "any"}}, text: forced},
		{rule: "anthropic-forced-thinking", at: sonnet, tools: true, good: budget(), bad: object{"thinking": object{"type": "enabled"}, "tool_choice": object{"type": "any"}}, text: "Thinking may not be enabled when tool_choice forces tool use."},
		{rule: "anthropic-prefill", at: opus, turns: 2, before: func(p *rawClient) {
			p.list = p.list[:1]
			p.list = append(p.list, object{"role": "assistant", "content": "It"})
		}, scenario: "prefill", text: "This model does not support assistant message prefill. The conversation must end with a user message."},
		{rule: "anthropic-thinking-enabled", at: opus, good: ofKind("adaptive"), bad: budget(), text: `"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`},
		{rule: "anthropic-thinking-disabled", at: opus, bad: ofKind("disabled"), text: `"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`},
		{rule: "anthropic-thinking-between", at: opus.of("claude-sonnet-5-5"), good: ofKind("between_tools"), bad: ofKind("disabled"), text: `To turn thinking off on this model, send "thinking": {"type": "between_tools"}`},
		{rule: "anthropic-thinking-adaptive", at: opus.of("claude-opus-4-5"), good: budget(), bad: ofKind("adaptive"), text: "adaptive thinking is not supported on this model"},
		{rule: "anthropic-effort-disabled", at: opus.of("claude-opus-5"), good: object{"thinking": object{"type": "disabled"}, "output_config": object{"effort": "high"}}, bad: object{"thinking": object{"type": "disabled"}, "output_config": object{"effort": "max"}}, text: "output_config.effort: 'max' needs thinking on this model"},
		{rule: "anthropic-results", at: opus, tools: true, turns: 2, before: unanswered, text: "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_"},
		{rule: "anthropic-thinking-first", at: sonnet, tools: true, good: budget(), bad: budget(), change: lose, text: "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is enabled, a final `assistant` message must start with a thinking block"},
		{rule: "anthropic-foreign", at: opus, tools: true, turns: 2, before: foreign(rawClient{name: "vertex", wire: "messages", model: "claude-opus-5-5"}), text: "messages.1.content.0: Invalid `signature` in `thinking` block"},
		{rule: "anthropic-thinking-modified", at: opus, tools: true, scenario: "interleaved", change: func(l []any) []any { return append(l[:2:2], l[3:]...) }, text: "messages.1.content.0: " + modified},
		{rule: "anthropic-thinking-modified", at: opus, tools: true, change: func(l []any) []any { l[0].(object)["thinking"] = "Other."; return l }, text: "messages.1.content.0: " + modified},
		{rule: "anthropic-thinking-lost", at: opus, tools: true, change: lose, text: "did not come back: the model has lost its plan, and the prompt cache of the turn misses"},
		{rule: "anthropic-thinking-turns", at: opus, tools: true, scenario: "answer", turns: 2, change: lose, text: "of an earlier turn did not come back: the prompt cache misses"},
		{rule: "anthropic-bound", at: opus, tools: true, turns: 2, before: func(p *rawClient) { p.system = "Be brief. It is noon." }, text: "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."},
		{rule: "anthropic-bound", at: opus, tools: true, turns: 2, before: func(p *rawClient) { p.tools = false }, text: "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."},
		{rule: "anthropic-bound", at: opus, tools: true, turns: 2, before: func(p *rawClient) { p.model = "claude-sonnet-5-5" }, text: "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."},
		{rule: "anthropic-bound", at: opus, tools: true, turns: 3, before: func(p *rawClient) { p.list = p.list[4:] }, text: "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."},
		{rule: "anthropic-items", at: opus, scenario: "server-tool", turns: 2, change: lose, text: "messages.1.content.0: server block is lost: the blocks of an answer must come back unchanged"},
		{rule: "anthropic-schema-open", at: opus, good: format(orderSchema), bad: format(`{"type":"object","properties":{}}`), text: "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"},
		{rule: "anthropic-schema-recursive", at: opus, good: format(`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`),
			bad:  format(`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","additionalProperties":false,"properties":{"next":{"$ref":"#/$defs/a"}}}}}`),
			text: "output_config.format.schema: recursive schemas are not supported"},
		{rule: "anthropic-schema-optional", at: opus, good: format(orderSchema), bad: format(optional25()),
			text: "Schemas contains too many optional parameters (25), which would make grammar compilation inefficient. Reduce the number of optional parameters in your tool schemas (limit: 24)."},
		{rule: "anthropic-system-role", at: sonnet, turns: 2, before: func(p *rawClient) { p.list = append(p.list, object{"role": "system", "content": "Be kind."}) }, text: "role 'system' is not supported on this model"},
	}
}

// examplesOfGoogle are those of its rules.
func examplesOfGoogle() []example {
	return []example{
		{rule: "gemini-signature-missing", at: gemini, tools: true, change: lose, text: unsigned},
		{rule: "gemini-signature-foreign", at: gemini, tools: true, change: alter, text: "Corrupted thought signature."},
		{rule: "gemini-foreign", at: gemini, tools: true, scenario: "answer", turns: 2, before: foreign(rawClient{name: "vertex", wire: "gemini", model: "gemini-4-argon"}), text: "Corrupted thought signature."},
		{rule: "gemini-signature-kept", at: gemini, scenario: "answer", turns: 2, change: lose, text: "contents.1.parts.0: the signature of the text part is lost"},
		{rule: "gemini-budget", at: gemini, good: thinkingBy(object{"thinkingLevel": "low"}), bad: thinkingBy(object{"thinkingBudget": 9}), text: "Thinking budget is not supported for this model. Use thinking_level."},
		{rule: "gemini-level-and-budget", at: gemini.of("gemini-3.8-flash"), bad: thinkingBy(object{"thinkingLevel": "low", "thinkingBudget": 9}), text: "You can only set one of thinking_budget and thinking_level."},
		{rule: "gemini-level", at: gemini, good: thinkingBy(object{"thinkingLevel": "HIGH"}), bad: thinkingBy(object{"thinkingLevel": "minimal"}), text: "Thinking level minimal is not supported for this model."},
		{rule: "gemini-budget-zero", at: gemini.of("gemini-2.5-pro"), good: thinkingBy(object{"thinkingBudget": -1}), bad: thinkingBy(object{"thinkingBudget": 0}), text: "Budget 0 is invalid. This model only works in thinking mode."},
		{rule: "gemini-result-media", at: gemini.of("gemini-2.5-flash"), tools: true, turns: 2, before: withMedia("parts"), text: "Invalid JSON payload received. Unknown name \"parts\" at 'contents.parts.function_response': Cannot find field."},
		{rule: "gemini-result-media-inline", at: gemini, tools: true, turns: 2, before: withMedia(""), text: "contents.2.parts.1: the media of a result belong into functionResponse.parts"},
		{rule: "gemini-tier", at: gemini, good: object{"serviceTier": "flex"}, bad: object{"generationConfig": object{"serviceTier": "flex"}}, text: "Invalid JSON payload received. Unknown name \"serviceTier\" at 'generation_config': Cannot find field."},
		{rule: "gemini-result-count", at: gemini, tools: true, turns: 2, before: unanswered, text: "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."},
		{rule: "google-compatible-signature", at: completions.at("google", "gemini-4-argon"), tools: true, change: lose, text: unsigned},
	}
}

// examplesOfBedrock are those of its rules.
func examplesOfBedrock() []example {
	return []example{
		{rule: "bedrock-on-demand", at: bedrock, turns: 2, before: func(p *rawClient) { p.model = "anthropic.claude-opus-5" },
			text: "Invocation of model ID anthropic.claude-opus-5 with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model."},
		{rule: "bedrock-forced-tool", at: bedrock.of("us.anthropic.claude-opus-5-5"), bad: object{"toolConfig": object{"tools": []any{}, "toolChoice": object{"any": object{}}}}, text: fromBedrock + forced},
		{rule: "bedrock-schema-text", at: bedrock, good: textFormat("{}"), bad: textFormat(object{}), text: "SerializationException: outputConfig.textFormat.structure.jsonSchema.schema must be a string"},
		{rule: "bedrock-cache-ttl", at: bedrock, good: object{"system": []any{object{"cachePoint": object{"type": "default", "ttl": "1h"}}}}, bad: object{"system": []any{object{"cachePoint": object{"type": "default", "ttl": "2h"}}}},
			text: "1 validation error detected: Value '2h' at 'system.0.cachePoint.ttl' failed to satisfy constraint: Member must satisfy enum value set: [5m, 1h]"},
		{rule: "bedrock-results", at: bedrock, tools: true, turns: 2, before: unanswered, text: "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_"},
		{rule: "bedrock-carried", at: bedrock, tools: true, change: reverse, text: fromBedrock + "messages.1.content.2: " + modified},
		{rule: "bedrock-lost", at: bedrock, tools: true, change: lose, text: "did not come back"},
		{rule: "bedrock-foreign", at: bedrock, tools: true, turns: 2, before: foreign(rawClient{name: "anthropic", wire: "messages", model: "claude-opus-5"}), text: fromBedrock + "messages.1.content.0: Invalid `signature` in `thinking` block"},
		{rule: "bedrock-bound", at: bedrock.of("us.anthropic.claude-opus-5-5"), tools: true, turns: 2, before: func(p *rawClient) { p.system = "Other." }, text: fromBedrock + "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."},
		{rule: "bedrock-sampling", at: bedrock, bad: object{"inferenceConfig": object{"temperature": 0.2}}, text: fromBedrock + temperature},
		{rule: "bedrock-system-role", at: bedrock.of("us.anthropic.claude-opus-4-6-v1"), turns: 2, before: func(p *rawClient) {
			p.list = append(p.list, object{"role": "system", "content": []any{object{"text": "x"}}})
		}, text: fromBedrock + "role 'system' is not supported on this model"},
	}
}

// examplesOfOthers are those of its rules.
func examplesOfOthers() []example {
	return []example{
		{rule: "deepseek-reasoning-turn", at: deepseek, tools: true, turns: 1, change: func(l []any) []any { return lose(l) }, withoutTools: true, text: "The `reasoning_content` in the thinking mode must be passed back to the API."},
		{rule: "deepseek-reasoning", at: deepseek, tools: true, change: lose, text: "The `reasoning_content` in the thinking mode must be passed back to the API."},
		{rule: "deepseek-messages", at: opus.at("deepseek", "deepseek-v4-pro"), tools: true, change: lose, text: "The `content[].thinking` in the thinking mode must be passed back to the API."},
		{rule: "deepseek-forced-choice", at: deepseek, tools: true, good: object{"tool_choice": "auto"}, bad: object{"tool_choice": "required"}, text: "Thinking mode does not support this tool_choice"},
		{rule: "deepseek-schema", at: deepseek, good: object{"response_format": object{"type": "json_object"}}, bad: object{"response_format": object{"type": "json_schema"}}, text: "This response_format type is unavailable now"},
		{rule: "kimi-reasoning", at: completions.at("kimi", "kimi-k3"), tools: true, change: lose, text: "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"},
		{rule: "tools-kept", at: responses, tools: true, forgets: true, text: "the tools of the turn are missing"},
		{rule: "glm-tool-choice", at: completions.at("glm", "glm-5.2"), tools: true, good: object{"tool_choice": "auto"}, bad: object{"tool_choice": "none"}, text: "Tool choice must be auto"},
		{rule: "kimi-reasoning", at: completions.at("kimi", "kimi-k3"), tools: true, change: blank, text: "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"},
		{rule: "glm-carried", at: completions.at("glm", "glm-5.2"), turns: 2, scenario: "answer", good: object{"thinking": object{"type": "enabled", "clear_thinking": false}}, bad: object{"thinking": object{"type": "enabled", "clear_thinking": false}}, change: lose,
			text: "reasoning_content at messages.1 is lost: with clear_thinking false the sequence must equal the one that was sent"},
		{rule: "minimax-carried", at: completions.at("minimax", "MiniMax-M3"), scenario: "answer", turns: 2, change: lose, text: "messages.1: the reasoning is lost: MiniMax's models lose quality without it"},
		{rule: "minimax-carried", at: completions.at("minimax-split", "MiniMax-M3"), scenario: "answer", turns: 2, change: alter, text: "messages.1: the reasoning is altered: MiniMax's models lose quality without it"},
		{rule: "openrouter-carried", at: completions.at("openrouter", "openai/gpt-6-sol"), tools: true, change: func(l []any) []any {
			l[0].(object)["reasoning_details"].([]any)[1].(object)["index"] = 0
			return l
		}, text: "messages.1: reasoning_details is altered: the array must come back as it was sent"},
		{rule: "mistral-carried", at: mistral, tools: true, good: effort("high"), bad: effort("high"), change: lose, text: "messages.1.content.0: the thinking part is lost"},
		{rule: "mistral-effort", at: mistral, good: effort("high"), bad: effort("low"), text: "Invalid reasoning_effort: low"},
		{rule: "mistral-fields", at: mistral, turns: 2, before: func(p *rawClient) { p.list[1].(object)["reasoning_content"] = "x" }, text: "Extra inputs are not permitted", where: func(status int) bool { return status == 422 }},
		{rule: "mistral-ids", at: mistral, tools: true, turns: 2, before: func(p *rawClient) { p.list = edit(p.list, longID(p)).([]any) }, text: "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."},
		{rule: "mistral-results", at: mistral, tools: true, turns: 2, before: unanswered, text: "Not the same number of function calls and responses"},
		{rule: "mistral-order", at: mistral, tools: true, turns: 2, before: func(p *rawClient) { p.list = p.list[:3] }, text: "Unexpected role 'user' after role 'tool'"},
		{rule: "xai-parameters", at: completions.at("xai", "grok-4.6"), bad: object{"stop": "."}, text: "Argument not supported on this model: stop"},
		{rule: "xai-order", at: completions.at("xai", "grok-4.6"), scenario: "parallel", tools: true, turns: 2, before: func(p *rawClient) { p.list[2], p.list[3] = p.list[3], p.list[2] }, text: "the results at messages.3 are not in the order of the calls"},
		{rule: "reasoning-returned", at: completions.at("vllm", "qwen3-32b"), tools: true, change: func(l []any) []any {
			m := l[0].(object)
			m["reasoning_content"] = m["reasoning"]
			delete(m, "reasoning")
			return l
		}, text: "messages.1: the reasoning is altered"},
		{rule: "ollama-thinking", at: rawClient{name: "ollama", wire: "ollama", model: "gpt-oss"}, tools: true, change: lose, text: "messages.1: the thinking is lost"},
		{rule: "chat-foreign", at: completions.at("vllm", "qwen3-32b"), tools: true, turns: 2, before: foreign(deepseek), text: "messages.1: reasoning of deepseek was sent to another server"},
	}
}
