package modelparams

import "slices"

// IsNumber reports whether providers take a number for a parameter of this name, in snake or camel case.
func IsNumber(name string) bool {
	return slices.Contains([]string{
		"temperature", "top_p", "top_k", "min_p", "typical_p", "top_a", "tfs_z", "n", "seed", "random_seed",
		"max_tokens", "max_completion_tokens", "max_output_tokens", "min_tokens", "max_tool_calls", "budget_tokens", "thinking_budget",
		"presence_penalty", "frequency_penalty", "repetition_penalty", "repeat_penalty", "repeat_last_n", "length_penalty",
		"logprobs", "top_logprobs", "best_of", "candidate_count", "dimensions", "output_dimensionality",
		"num_predict", "num_ctx", "num_keep", "num_batch", "num_gpu", "num_thread", "mirostat", "mirostat_eta", "mirostat_tau", "keep_alive",
	}, snake(name))
}

// IsBoolean reports whether providers take true or false for a parameter of this name, in snake or camel case.
func IsBoolean(name string) bool {
	return slices.Contains([]string{
		"store", "logprobs", "response_logprobs", "parallel_tool_calls", "disable_parallel_tool_use", "enable_thinking", "include_thoughts", "include_reasoning",
		"safe_prompt", "echo", "ignore_eos", "enable_search", "background", "use_beam_search", "skip_special_tokens", "truncate", "auto_truncate",
	}, snake(name))
}
