package main

import "os"

// A workload is one piece of work that several programs do.
type workload struct {
	id         string
	operations int      // in one process
	limit      []string // the arguments of the hand-written program; nil for none
	qtype      []string // a program and its arguments
	before     []string // the same with an earlier build; nil for none
}

// Sizes of the inputs.
const (
	rows         = 100_000
	messages     = 20_000
	steps        = 500
	chatRows     = 20_000
	manySessions = 10_000
	perSession   = 20
)

// workloads returns the workloads in the order of the table.
func workloads(p programs) []workload {
	command := func(arguments ...string) func(string) []string {
		return func(program string) []string {
			if program == "" {
				return nil
			}
			return append([]string{program}, arguments...)
		}
	}
	compare := func(id string, operations int, limit []string, with func(string) []string, now, before string) workload {
		return workload{id, operations, limit, with(now), with(before)}
	}
	run := func(document, in string) func(string) []string {
		return command("run", document, "-I", in, "-o", "out.jsonl", "--ephemeral", "-q")
	}
	return []workload{
		compare("rows", rows, []string{"rows", "rows.jsonl", "limit.jsonl"}, run("rows.qtype.yaml", "rows.jsonl"), p.qtype, p.qtypeBefore),
		compare("chat", chatRows, nil, run("chat.qtype.yaml", "chat.jsonl"), p.qtype, p.qtypeBefore),
		compare("memory", chatRows, nil, run("memory.qtype.yaml", "chat.jsonl"), p.qtype, p.qtypeBefore),
		compare("check", steps, []string{"parse", "steps.qtype.yaml"}, command("validate", "steps.qtype.yaml"), p.qtype, p.qtypeBefore),
		compare("window", messages, []string{"window", "messages.jsonl"}, command("w1", "messages.jsonl"), p.bench, p.benchBefore),
		compare("sessions", manySessions*perSession, []string{"sessions", "messages.jsonl"}, command("w2", "messages.jsonl"), p.bench, p.benchBefore),
	}
}

// programs returns the programs of a workload by the names of their figures.
func (w workload) programs() (map[string][]string, error) {
	all := map[string][]string{"qtype": w.qtype}
	if w.before != nil {
		all["before"] = w.before
	}
	if w.limit != nil {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		all["limit"] = append([]string{self, limitCommand}, w.limit...)
	}
	return all, nil
}
