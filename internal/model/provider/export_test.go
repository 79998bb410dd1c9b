package provider

// CompareTable compares a table of docs/models.md, or rewrites it with -update.
var CompareTable = compareTable
