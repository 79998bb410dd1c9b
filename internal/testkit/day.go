package testkit

// Day is the day on which tests check documents, as SOURCE_DATE_EPOCH: 2026-07-01. What models
// are shut down must not depend on the day on which a test runs.
const Day = "1782864000"
