package converters_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/convert"
)

// drawProject draws a project of AI Refinery: agents of all classes, and super agents
// with random lists and transitions, also those that lead back.
func drawProject(t *rapid.T) map[string]any {
	names := []string{}
	var utility, supers, routed []any
	for i := range rapid.IntRange(1, 5).Draw(t, "agents") {
		name := fmt.Sprintf("Agent %d", i)
		names = append(names, name)
		config := map[string]any{}
		if rapid.Bool().Draw(t, "prompt") {
			config["magic_prompt"] = rapid.SampledFrom([]string{"You help.", "Help with {query}", "{Query} for {shop} at {date}", "{chat_history}", "${X} {{a}} {query}"}).Draw(t, "magic")
		}
		if rapid.Bool().Draw(t, "system") {
			config["system_prompt"] = rapid.SampledFrom([]string{"Be kind.", "Be {kind}.", "About {query}:"}).Draw(t, "text")
		}
		if list := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"chat_history", "env_variable", "tree", "date"}), rapid.ID).Draw(t, "contexts"); len(list) > 0 {
			config["contexts"] = list
		}
		utility = append(utility, map[string]any{"agent_name": name, "config": config,
			"agent_class": rapid.SampledFrom([]string{"UtilityAgent", "PlanningAgent", "AuthorAgent", "HumanAgent", "CustomAgent", "SearchAgent"}).Draw(t, "class")})
	}
	all := append([]string{"Unknown", "Super 0", "Super 1"}, names...)
	for i := range rapid.IntRange(0, 2).Draw(t, "supers") {
		supers = append(supers, map[string]any{"agent_name": fmt.Sprintf("Super %d", i), "agent_class": rapid.SampledFrom([]string{"SuperAgent", "FlowSuperAgent", "FlowSuperAgent"}).Draw(t, "class"),
			"config": map[string]any{"agent_list": drawNodes(t, all), "goal": "Do ${it} \"well\"."}})
	}
	for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(all), rapid.ID).Draw(t, "routed") {
		routed = append(routed, map[string]any{"agent_name": name})
	}
	return map[string]any{"utility_agents": utility, "super_agents": supers, "orchestrator": map[string]any{"agent_list": routed},
		"base_config": map[string]any{"llm_config": map[string]any{"model": "gpt-4o"}},
		"memory_config": map[string]any{"memory_modules": []any{
			map[string]any{"memory_name": "env_variable", "memory_class": "VariableMemoryModule", "config": map[string]any{"variables": map[string]any{"shop": "N ${S}", "a b": 3}}},
			map[string]any{"memory_name": "tree", "memory_class": "MemTreeModule"}}}}
}

// drawNodes draws the agent_list of a super agent.
func drawNodes(t *rapid.T, names []string) []any {
	var nodes []any
	list := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(t, "list")
	for _, name := range list {
		node := map[string]any{"agent_name": name}
		if rapid.Bool().Draw(t, "first") {
			node["mode"] = "first-match"
		}
		var next []any
		for range rapid.IntRange(0, 3).Draw(t, "edges") {
			to := rapid.SampledFrom(list).Draw(t, "to")
			next = append(next, rapid.SampledFrom([]any{to, map[string]any{"condition": "It is " + to, "to": []string{to}},
				map[string]any{"condition": "yes", "to": to, "max_iterations": 2}, map[string]any{"default": true, "to": []string{to}}}).Draw(t, "edge"))
		}
		node["next_step"] = next
		nodes = append(nodes, node)
	}
	return nodes
}

// TestFile_RandomProject checks that any project of agents is converted to a document
// that is valid without warnings.
func TestFile_RandomProject(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text, err := json.MarshalIndent(drawProject(rt), "", "  ")
		if err != nil {
			rt.Fatal(err)
		}
		document, _ := convertText(t, convert.AIRefinery, string(text))
		if document == "" {
			rt.Fatalf("no document for\n%s", text)
		}
		if problems := validateText(t, "made.yaml", document); problems != "" {
			rt.Fatalf("%s\nin\n%s\nconverted from\n%s", problems, document, text)
		}
	})
}
