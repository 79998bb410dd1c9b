package spec

// Memory is a named chat memory that steps share by id. It keeps one conversation for each session.
type Memory struct {
	Positioned
	// ID is the memory's unique name: steps refer to it.
	ID string `yaml:"id" jsonschema:"required"`
	// Policy says what leaves the window when it is full: flush (blocks of old messages, QType's way), message_window (at most max_messages), token_window (at most max_tokens), round_window (the last n_rounds), unbounded (nothing).
	Policy Policy `yaml:"policy" default:"flush" validate:"policy"`
	// TokenLimit is for the policy flush: the most tokens that chat messages and context together may hold.
	TokenLimit int `yaml:"token_limit" default:"100000" validate:"gt=0"`
	// ChatHistoryTokenRatio is for the policy flush: the share of token_limit for chat messages, above 0 and at most 1; the rest is for context.
	ChatHistoryTokenRatio float64 `yaml:"chat_history_token_ratio" default:"0.7" validate:"gt=0,lte=1"`
	// TokenFlushSize is for the policy flush: how many tokens at least leave at a time once the chat share is exceeded.
	TokenFlushSize int `yaml:"token_flush_size" default:"3000" validate:"gt=0"`
	// MaxMessages is for the policy message_window: the most messages in the window.
	MaxMessages int `yaml:"max_messages" validate:"gt=0"`
	// MaxTokens is for the policy token_window: the most tokens in the window.
	MaxTokens int `yaml:"max_tokens" validate:"gt=0"`
	// KeepSystemFirst is for the policies message_window and token_window: a new system message goes to the front instead of the end.
	KeepSystemFirst bool `yaml:"keep_system_first" default:"false"`
	// NRounds is for the policy round_window: how many rounds, from one user message up to the next, stay in the window.
	NRounds int `yaml:"n_rounds" default:"3" validate:"gt=0"`
	// MaxContext is for the policy round_window: the most characters in the window.
	MaxContext int `yaml:"max_context" default:"10000" validate:"gt=0"`
	// Tokenizer is the encoding that tokens are counted with; where it is left out that of the model that reads the memory.
	Tokenizer string `yaml:"tokenizer" validate:"omitempty,oneof=o200k_base cl100k_base p50k_base p50k_edit r50k_base"`
	// Store is where the memory lives: the id of a store, or a URL such as postgres://host/db; the application's first store where it is left out.
	Store StoreRef `yaml:"store"`
	// TTL is how long a session is kept that nobody touches, window and history, such as 720h; forever where it is left out.
	TTL Duration `yaml:"ttl" validate:"gt=0"`
	// Turns says what happens to a call while another one of the same session goes on: queue (it waits), reject (it fails at once) or interrupt (it takes over).
	Turns string `yaml:"turns" default:"queue" validate:"oneof=queue reject interrupt"`
	// Context are further blocks that the model is sent beside the chat messages; they share what chat_history_token_ratio leaves.
	Context []ContextBlock `yaml:"context"`
}

// EntityID is the id.
func (m *Memory) EntityID() string { return m.ID }

// Kind is KindMemory.
func (m *Memory) Kind() Kind { return KindMemory }

// StoreRef is the store that a memory lives in: one that the document declares, or the URL of one.
type StoreRef struct {
	URL   Secret      // the address, which may hold a password; empty where a store is named
	Store Ref[*Store] // the store
}

// IsZero tells whether the document names no store here.
func (s *StoreRef) IsZero() bool { return s.URL.IsZero() && s.Store.IsZero() }

// Store is a database that memories live in.
type Store struct {
	Positioned
	// ID is the store's unique name: memories refer to it.
	ID string `yaml:"id" jsonschema:"required"`
	// Type is the kind of database: sqlite (a file), postgres, redis, or memory (in the process, gone with it).
	Type string `yaml:"type" jsonschema:"required" validate:"oneof=memory postgres redis sqlite"`
	// URL is the address: postgres://host/db, redis://host, or the path of a SQLite file.
	URL Secret `yaml:"url"`
	// Encryption seals what is said before it is stored, with AES-256-GCM: texts, media, names, roles, tool calls and named values. Ids, counts and times stay readable.
	Encryption *Encryption `yaml:"encryption"`
}

// EntityID is the id.
func (s *Store) EntityID() string { return s.ID }

// Kind is KindStore.
func (s *Store) Kind() Kind { return KindStore }

// Encryption is the keys that a store is sealed with.
type Encryption struct {
	Positioned
	// Key seals all that is said from now on: 32 random bytes in base64, as `openssl rand -base64 32` writes them. Who loses it loses the conversations.
	Key Secret `yaml:"key" jsonschema:"required"`
	// OldKeys are keys that were in use before: what they sealed can still be read.
	OldKeys []Secret `yaml:"old_keys"`
	// AllowPlain lets what was stored before the encryption be read; else it is an error, for anybody might have put it there.
	AllowPlain bool `yaml:"allow_plain" default:"false"`
}

// ContextBlock is what a memory sends to the model beside chat messages. Where the
// blocks are too large together the one of the highest priority number is cut
// first; a block of priority 0 never is.
type ContextBlock interface {
	Node
	contextBlock() // marks the kinds of blocks
}

// PinnedBlock is a text that the model is always sent.
type PinnedBlock struct {
	Positioned
	// Text is the text.
	Text string `yaml:"text" jsonschema:"required"`
	// Priority says what is cut first where the blocks are too large: the highest number; 0 is never cut.
	Priority int `yaml:"priority" default:"0" validate:"gte=0"`
}

func (*PinnedBlock) contextBlock() {}

// VariablesBlock is the named values that steps and agents keep for the session.
type VariablesBlock struct {
	Positioned
	// Priority says what is cut first where the blocks are too large: the highest number; 0 is never cut.
	Priority int `yaml:"priority" default:"1" validate:"gte=0"`
}

func (*VariablesBlock) contextBlock() {}

// SummaryBlock is a running summary of the messages that left the window.
type SummaryBlock struct {
	Positioned
	// Model names the chat model that writes the summary, by its id.
	Model Ref[*Model] `yaml:"model" jsonschema:"required"`
	// MaxTokens is how long the summary may be.
	MaxTokens int `yaml:"max_tokens" default:"2000" validate:"gt=0"`
	// Instructions tell the model how to write the summary; they stand in the place of those that it is given otherwise.
	Instructions string `yaml:"instructions"`
	// Priority says what is cut first where the blocks are too large: the highest number; 0 is never cut.
	Priority int `yaml:"priority" default:"2" validate:"gte=0"`
}

func (*SummaryBlock) contextBlock() {}

// RetrievalBlock is those messages that left the window and are most similar to the newest one.
type RetrievalBlock struct {
	Positioned
	// EmbeddingModel names the embedding model that similarity is measured with, by its id.
	EmbeddingModel Ref[*EmbeddingModel] `yaml:"embedding_model" jsonschema:"required"`
	// TopK is how many messages are found again.
	TopK int `yaml:"top_k" default:"5" validate:"gt=0"`
	// Priority says what is cut first where the blocks are too large: the highest number; 0 is never cut.
	Priority int `yaml:"priority" default:"3" validate:"gte=0"`
}

func (*RetrievalBlock) contextBlock() {}
