package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// habitualCommands are commands of other programs, by the command that does the same.
func habitualCommands() map[string]string {
	return map[string]string{
		"lint": "validate", "check": "validate", "verify": "validate", "format": "fmt", "new": "init", "create": "init",
		"exec": "run", "start": "run", "batch": "run", "predict": "run", "repl": "chat", "talk": "chat", "ui": "serve", "server": "serve", "api": "serve",
		"tests": "test", "evaluate": "eval", "graph": "visualize", "draw": "visualize", "plan": "visualize", "import": "convert", "price": "cost",
		"sessions": "memory list", "session": "memory show", "history": "memory history", "skills": "generate skills", "prune": "clean", "gc": "clean",
	}
}

// habitualCommand returns the command line that a word in the place of a command
// probably means; empty if there is none.
func habitualCommand(c *cobra.Command, word string) string {
	if c.HasParent() {
		return ""
	}
	meant := habitualCommands()[word]
	if lower := strings.ToLower(word); strings.HasSuffix(lower, ".yaml") || strings.HasSuffix(lower, ".yml") {
		meant = "run " + word
	}
	first, _, _ := strings.Cut(meant, " ")
	if !slices.ContainsFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Name() == first }) {
		return ""
	}
	return c.Name() + " " + meant
}

// habitualFlag returns what to do in place of a flag that other programs have; empty if
// there is nothing.
func habitualFlag(c *cobra.Command, name string) string {
	if !slices.Contains([]string{"run", "chat", "serve", "eval"}, c.Name()) {
		return ""
	}
	switch name {
	case "workers", "jobs", "parallel", "concurrency", "threads":
		return "a step declares its number of workers: concurrency_config: {num_workers: 4}"
	case "model", "temperature", "max-tokens", "provider":
		return "the document declares its models, with model_id and inference_params"
	case "prompt", "message", "text", "var", "param":
		return "inputs are given by -i, and rows by -I"
	case "api-key", "key":
		return "keys are read from the environment, or from a file .env next to the document"
	}
	return ""
}
