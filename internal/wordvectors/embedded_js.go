package wordvectors

// table is left out of builds for browsers, which search no conversations.
const table = ""
