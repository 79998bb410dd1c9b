package spec

import "slices"

// Memory is a named chat memory that steps share by id. It stores one conversation for each session.
type Memory struct {
	Positioned
	// ID is the memory's unique name; steps refer to it.
	ID string `yaml:"id" jsonschema:"required"`
	// Policy describes what is evicted from the window when it is full: flush (blocks of old messages, as in QType), message_window (all but max_messages), token_window (all but max_tokens), round_window (all but the last n_rounds), unbounded (nothing).
	Policy Policy `yaml:"policy" default:"flush" validate:"policy"`
	// TokenLimit is for the policy flush: the maximum number of tokens of chat messages and context together.
	TokenLimit int `yaml:"token_limit" default:"100000" validate:"gt=0"`
	// ChatHistoryTokenRatio is for the policy flush: the share of token_limit for chat messages, above 0 and at most 1; the rest is for context.
	ChatHistoryTokenRatio float64 `yaml:"chat_history_token_ratio" default:"0.7" validate:"gt=0,lte=1"`
	// TokenFlushSize is for the policy flush: the minimum number of tokens evicted at a time once the share for chat messages is exceeded.
	TokenFlushSize int `yaml:"token_flush_size" default:"3000" validate:"gt=0"`
	// CompactAt is for the policy flush with a context block of type summary: the share of token_limit, or of the context window of the model if that is smaller, at which the older half of the window leaves and is added to the summary. The whole call counts: messages, system message, context, descriptions of tools and the room for the answer. It replaces chat_history_token_ratio and token_flush_size.
	CompactAt float64 `yaml:"compact_at" validate:"gt=0,lte=1"`
	// MaxMessages is for the policy message_window: the maximum number of messages in the window.
	MaxMessages int `yaml:"max_messages" validate:"gt=0"`
	// MaxTokens is for the policy token_window: the maximum number of tokens in the window.
	MaxTokens int `yaml:"max_tokens" validate:"gt=0"`
	// KeepSystemFirst is for the policies message_window and token_window: a new system message goes to the front instead of the end.
	KeepSystemFirst bool `yaml:"keep_system_first" default:"false"`
	// NRounds is for the policy round_window: how many rounds, from one user message up to the next, stay in the window.
	NRounds int `yaml:"n_rounds" default:"3" validate:"gt=0"`
	// MaxContext is for the policy round_window: the maximum number of characters in the window.
	MaxContext int `yaml:"max_context" default:"10000" validate:"gt=0"`
	// ShortenToolResults is the size in tokens to which old tool results are shortened, before any message leaves, once the window exceeds its limit of tokens or the context window of the model. The start and the end stay, with a note of the message's number, by which a MemoryTool with read returns the whole result. Without it results stay whole.
	ShortenToolResults int `yaml:"shorten_tool_results" validate:"gte=50"`
	// KeepToolResults is for shorten_tool_results: how many of the newest tool results stay whole.
	KeepToolResults int `yaml:"keep_tool_results" default:"3" validate:"gte=0"`
	// DropImages is the number of newest rounds that keep their images; a round is one user message, or several that directly follow each other, up to the next one. Images of older rounds are sent as captions that name the type and the size, in each call. Without it all images are sent.
	DropImages int `yaml:"drop_images" validate:"gt=0"`
	// Prefix selects what happens to variables and retrieved messages that were sent with an earlier question: stable (they are stored with it and sent again, so that requests only grow until messages leave the window), fresh (they are left out, so that each request differs from the one before at the earlier question) or auto (stable if a model that uses the memory binds its reasoning to the request before it, else fresh).
	Prefix Prefix `yaml:"prefix" default:"auto" validate:"oneof=auto stable fresh"`
	// Tokenizer counts tokens: an encoding of OpenAI (o200k_base, cl100k_base, p50k_base, p50k_edit or r50k_base), or the path of a model's tokenizer.json of Hugging Face or .model file of SentencePiece, relative to the file with the key; by default the encoding of the model that reads the memory, which is an estimate for models of others.
	Tokenizer Tokenizer `yaml:"tokenizer"`
	// Store is where the memory is stored: the id of a store, or a URL such as postgres://host/db; by default the application's first store.
	Store StoreRef `yaml:"store"`
	// TTL is how long an unused session is kept, window and history, such as 720h; without it sessions do not expire.
	TTL Duration `yaml:"ttl" validate:"gt=0"`
	// Turns selects what happens to a turn while another one of the same session runs: queue (it waits), reject (it fails at once) or interrupt (it cancels the other one).
	Turns string `yaml:"concurrent_turns" alias:"turns" default:"queue" validate:"oneof=queue reject interrupt"`
	// Scope is what one conversation belongs to: session (each session has its own), user (all sessions of a user are one conversation) or app (all sessions are one).
	Scope Scope `yaml:"scope" default:"session" validate:"oneof=session user app"`
	// AuditLog is a file that gets a line of JSON for each access to stored conversations other than a turn: reads, deletions, rewinds and copies, with session, user and time; it is relative to the file with the key. If it cannot be written, the access is refused.
	AuditLog string `yaml:"audit_log"`
	// Context are blocks that are sent to the model in addition to the chat messages; they share what chat_history_token_ratio leaves.
	Context []ContextBlock `yaml:"context"`
}

// EntityID is the id.
func (m *Memory) EntityID() string { return m.ID }

// Kind is KindMemory.
func (m *Memory) Kind() Kind { return KindMemory }

// Prefix is the key prefix of a memory.
type Prefix string

// The values of the key prefix.
const (
	PrefixAuto   Prefix = "auto"   // stable if a model binds its reasoning to the prefix, else fresh
	PrefixStable Prefix = "stable" // the context of earlier questions stays
	PrefixFresh  Prefix = "fresh"  // only the newest question has context
)

// MovesContext reports whether the memory has context blocks whose content changes in a
// conversation: all but pinned texts.
func (m *Memory) MovesContext() bool {
	return slices.ContainsFunc(m.Context, func(b ContextBlock) bool {
		_, pinned := b.(*PinnedBlock)
		return !pinned
	})
}

// StoreRef is the store of a memory: one that the document declares, or the URL of one.
type StoreRef struct {
	URL   Secret      `secret:"url"` // the address, which may hold a password; empty if Store is set
	Store Ref[*Store] // the store
}

// IsZero reports whether the document names no store.
func (s *StoreRef) IsZero() bool { return s.URL.IsZero() && IsEmpty(&s.Store) }

// Store is a database of memories.
type Store struct {
	Positioned
	// ID is the store's unique name; memories refer to it.
	ID string `yaml:"id" jsonschema:"required"`
	// Type is the kind of database.
	Type string `yaml:"type" jsonschema:"required" validate:"store"`
	// URL is the address: postgres://host/db, redis://host, or the path of a SQLite file.
	URL Secret `yaml:"url" secret:"url"`
	// Namespace is the name under which the application has its conversations and the records of its server in the database, so that applications that use one database share nothing; documents with the same namespace are one application for the store. The default is the application's id.
	Namespace string `yaml:"namespace"`
	// Encryption encrypts messages before they are stored, with AES-256-GCM: texts, media, names, roles, tool calls and named values. Ids, counts and times stay readable.
	Encryption *Encryption `yaml:"encryption"`
}

// EntityID is the id.
func (s *Store) EntityID() string { return s.ID }

// Kind is KindStore.
func (s *Store) Kind() Kind { return KindStore }

// Encryption holds the keys of an encrypted store.
type Encryption struct {
	Positioned
	// Key encrypts all new data: 32 random bytes in base64, as `openssl rand -base64 32` writes them. Without it the conversations cannot be read.
	Key Secret `yaml:"key" jsonschema:"required"`
	// OldKeys are earlier keys: data that they encrypted can still be read.
	OldKeys []Secret `yaml:"old_keys"`
	// AllowUnencrypted allows reading data that was stored without encryption; by default it is an error, because anyone with access to the store could have written it.
	AllowUnencrypted bool `yaml:"allow_unencrypted" alias:"allow_plain" default:"false"`
}

// ContextBlock is content that a memory sends to the model in addition to chat
// messages. If the blocks are too large together, the one with the highest priority
// number is shortened first; a block of priority 0 never is.
type ContextBlock interface {
	Node
	contextBlock() // marks the kinds of blocks
}

// PinnedBlock is a text that is part of every prompt.
type PinnedBlock struct {
	Positioned
	// Text is the text.
	Text string `yaml:"text" jsonschema:"required" verbatim:"true"`
	// Priority selects which block is shortened first if the blocks are too large: the one with the highest number; 0 is never shortened.
	Priority int `yaml:"priority" default:"0" validate:"gte=0"`
}

func (*PinnedBlock) contextBlock() {}

// Scope is what a conversation, a variable or a context block belongs to.
type Scope string

// The scopes, from the narrowest.
const (
	ScopeSession Scope = "session" // one session
	ScopeUser    Scope = "user"    // all sessions of a user; for a session without a user, the session itself
	ScopeApp     Scope = "app"     // all sessions of the memory
)

// Widest returns the wider one of two scopes.
func (s Scope) Widest(other Scope) Scope {
	order := []Scope{ScopeSession, ScopeUser, ScopeApp}
	return order[max(slices.Index(order, s), slices.Index(order, other), 0)]
}

// VariablesBlock is the named values that steps and agents store for the session, for its user or for all sessions.
type VariablesBlock struct {
	Positioned
	// Scope selects the values: those of the session, of its user, or of the application (app). There can be one block for each scope.
	Scope Scope `yaml:"scope" default:"session" validate:"oneof=session user app"`
	// Priority selects which block is shortened first if the blocks are too large: the one with the highest number; 0 is never shortened.
	Priority int `yaml:"priority" default:"1" validate:"gte=0"`
}

func (*VariablesBlock) contextBlock() {}

// BlockScope is the scope.
func (b *VariablesBlock) BlockScope() Scope { return b.Scope }

// SummaryBlock is a running summary of the messages that were evicted from the window.
type SummaryBlock struct {
	Positioned
	// Model is the id of the chat model that writes the summary.
	Model Ref[*Model] `yaml:"model" jsonschema:"required"`
	// Scope selects what is summarized: the session, or all sessions of its user (user): a new session then begins with the summary of the earlier ones.
	Scope Scope `yaml:"scope" default:"session" validate:"oneof=session user"`
	// MaxTokens is the maximum length of the summary.
	MaxTokens int `yaml:"max_tokens" default:"2000" validate:"gt=0"`
	// Instructions are the prompt for writing the summary; they replace the default ones.
	Instructions string `yaml:"instructions" verbatim:"true"`
	// Priority selects which block is shortened first if the blocks are too large: the one with the highest number; 0 is never shortened.
	Priority int `yaml:"priority" default:"2" validate:"gte=0"`
}

func (*SummaryBlock) contextBlock() {}

// BlockScope is the scope.
func (b *SummaryBlock) BlockScope() Scope { return b.Scope }

// RetrievalBlock is the evicted messages that are most similar to the newest one.
type RetrievalBlock struct {
	Positioned
	// EmbeddingModel is the id of the embedding model that measures similarity; without it words are compared, and their meanings by a table in the program.
	EmbeddingModel Ref[*EmbeddingModel] `yaml:"embedding_model"`
	// Scope selects the messages: those of the session, or of all sessions of its user (user).
	Scope Scope `yaml:"scope" default:"session" validate:"oneof=session user"`
	// TopK is the maximum number of retrieved passages; without it they have up to 4,000 tokens.
	TopK int `yaml:"top_k" validate:"gt=0"`
	// MinScore is the least score of retrieved passages, as qtype memory search prints it; 0 for no limit. With 0.4 the block is mostly empty if no message is relevant.
	MinScore float64 `yaml:"min_score" default:"0" validate:"gte=0"`
	// Priority selects which block is shortened first if the blocks are too large: the one with the highest number; 0 is never shortened.
	Priority int `yaml:"priority" default:"3" validate:"gte=0"`
}

func (*RetrievalBlock) contextBlock() {}

// BlockScope is the scope.
func (b *RetrievalBlock) BlockScope() Scope { return b.Scope }

// FactsBlock is what users stated in messages that left the window or in earlier sessions, extracted by a model. Each fact has its source message, and is updated or deleted when a later message states so; what held before stays, with its dates.
type FactsBlock struct {
	Positioned
	// Model is the id of the chat model that extracts the facts.
	Model Ref[*Model] `yaml:"model" jsonschema:"required"`
	// Scope selects whose facts they are: those of the user, in all sessions (user), or of the session only. For a session without a user it is the session.
	Scope Scope `yaml:"scope" default:"user" validate:"oneof=session user"`
	// MaxFacts is the maximum number of facts; beyond it the facts that were changed least recently are removed.
	MaxFacts int `yaml:"max_facts" default:"100" validate:"gt=0"`
	// MaxTokens is the maximum length of the facts that a call sends. If all fit, they follow the system message; else the most relevant ones precede the newest user message.
	MaxTokens int `yaml:"max_tokens" default:"2000" validate:"gt=0"`
	// TopK is the maximum number of facts that a call sends, in addition to max_tokens.
	TopK int `yaml:"top_k" validate:"gt=0"`
	// Instructions are the prompt for extracting facts; they replace the default ones.
	Instructions string `yaml:"instructions" verbatim:"true"`
	// Priority selects which block is shortened first if the blocks are too large: the one with the highest number; 0 is never shortened.
	Priority int `yaml:"priority" default:"2" validate:"gte=0"`
}

func (*FactsBlock) contextBlock() {}

// BlockScope is the scope.
func (b *FactsBlock) BlockScope() Scope { return b.Scope }

// ObservationsBlock is a log of dated statements that a model derives from messages that left the window. A statement is stored only with the messages that prove it, and is never rewritten: new ones are appended, and of a log that exceeds max_tokens the oldest lines are merged.
type ObservationsBlock struct {
	Positioned
	// Model is the id of the chat model that writes the statements.
	Model Ref[*Model] `yaml:"model" jsonschema:"required"`
	// Scope selects what is observed: the session, or all sessions of its user (user): a new session then begins with the log of the earlier ones.
	Scope Scope `yaml:"scope" default:"session" validate:"oneof=session user"`
	// MaxTokens is the maximum length of the log.
	MaxTokens int `yaml:"max_tokens" default:"2000" validate:"gt=0"`
	// Instructions are the prompt for writing statements; they replace the default ones.
	Instructions string `yaml:"instructions" verbatim:"true"`
	// Priority selects which block is shortened first if the blocks are too large: the one with the highest number; 0 is never shortened.
	Priority int `yaml:"priority" default:"2" validate:"gte=0"`
}

func (*ObservationsBlock) contextBlock() {}

// BlockScope is the scope.
func (b *ObservationsBlock) BlockScope() Scope { return b.Scope }
