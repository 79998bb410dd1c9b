package runtime

// RowDoneFunc is told what became of an input row: its number, its results in
// their order, and whether they are all, so that the row is finished. Its error
// ends the run.
type RowDoneFunc func(number int64, results []*Result, last bool) error

// WithRowDone tells f of every input row as soon as all that became of it is
// known: with workers that can be long before its results come out of Run,
// which keeps the order of the rows. f may be called by several goroutines at
// once and must not keep the results. A row that was cancelled is never
// finished. A flow that gathers rows cannot be run with it; see WithCheckpoints.
func WithRowDone(f RowDoneFunc) RunOption { return func(r *run) { r.finished = f } }

// WithRunID names a run that is resumed under the same name after an interruption: a
// turn of a memory that was kept before is not held again when its row is done
// again, and its answer is given back. Two runs must not have one name; an empty
// name is none.
func WithRunID(name string) RunOption { return func(r *run) { r.name = name } }
