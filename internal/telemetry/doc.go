// Package telemetry observes runs of applications: OpenTelemetry traces and their
// exporters, a recorder of the spans of recent runs, metrics in Prometheus' format, and
// feedback on answers.
//
// A Tracer, a Recorder and Metrics are independent of each other. Each is added to the
// context of a run, or is the observer of an App:
//
//	ctx = steps.WithObserver(ctx, tracer)   // first, so that others use its ids
//	ctx = recorder.Context(ctx, run)
//	ctx = steps.WithObserver(ctx, metrics)
//
// Without them runs report nothing, and nothing of this package is initialized.
package telemetry
