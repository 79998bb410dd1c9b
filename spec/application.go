package spec

import "time"

// Document is one file's content: an application, or a list of one kind.
type Document struct {
	Positioned
	Application *Application  // set for a mapping
	Auths       []Auth        // set for a list of auth providers
	Models      []ModelEntity // set for a list of models
	Tools       []Tool        // set for a list of tools
	Types       []*CustomType // set for a list of types
	Variables   []*Variable   // set for a list of variables
	Day         time.Time     // the day for which the document is checked; zero for none
	Language    *Language     // the language of the document; nil for that without additions
	Gaps        Unknowns      // what the parts that could not be read may have held; of the root document alone
}

// Application is a whole LLM application: its models, memories, tools, types and flows.
type Application struct {
	Positioned
	// ID is the application's unique name.
	ID string `yaml:"id" jsonschema:"required"`
	// Description describes what the application is for.
	Description string `yaml:"description"`
	// Memories are the chat memories that steps share by id.
	Memories []*Memory `yaml:"memories"`
	// Models are the chat and embedding models that steps use by id.
	Models []ModelEntity `yaml:"models"`
	// Types are the application's record types.
	Types []*CustomType `yaml:"types"`
	// Flows are the processes that can be run, served or invoked.
	Flows []*Flow `yaml:"flows"`
	// Auths are the credentials that models and tools use by id.
	Auths []Auth `yaml:"auths"`
	// Tools are the functions that agents and InvokeTool steps call.
	Tools []Tool `yaml:"tools"`
	// Stores are the databases of memories, by id. A memory without a store uses the first one; without any store an embedded SQLite file.
	Stores []*Store `yaml:"stores"`
	// Indexes are the vector and document stores that search steps use.
	Indexes []Index `yaml:"indexes"`
	// SecretManager resolves the secrets that the document names.
	SecretManager SecretManager `yaml:"secret_manager"`
	// Telemetry is where traces are sent.
	Telemetry *Telemetry `yaml:"telemetry"`
	// References are further documents whose components can be used by id, mostly through !include.
	References []*Document `yaml:"references"`
}

// EntityID is the id.
func (a *Application) EntityID() string { return a.ID }

// Kind is KindApplication.
func (a *Application) Kind() Kind { return KindApplication }

// CustomType is a record type that an application declares.
type CustomType struct {
	Positioned
	// ID is the type's name, used in type expressions.
	ID string `yaml:"id" jsonschema:"required"`
	// Description describes what a value of the type is.
	Description string `yaml:"description"`
	// Properties maps each field's name to its type expression: text, int?, list[Order].
	Properties Properties `yaml:"properties" jsonschema:"required"`
}

// EntityID is the id.
func (t *CustomType) EntityID() string { return t.ID }

// Kind is KindType.
func (t *CustomType) Kind() Kind { return KindType }

// Property is one field of a custom type.
type Property struct {
	Name string // the field's name
	Type Type   // its type
}

// Properties are the fields of a custom type, in document order.
type Properties []Property

// Variable is a named, typed value of a row.
type Variable struct {
	Positioned
	// ID is the variable's name; steps and flows refer to it.
	ID string `yaml:"id" jsonschema:"required"`
	// Type is what the variable holds: text, int, ChatMessage, list[text], a custom type; a trailing ? makes it optional.
	Type Type `yaml:"type" jsonschema:"required"`
	// Optional allows the value to be null or unset, like a trailing ? on the type.
	Optional bool `yaml:"optional" default:"false"`
	// UI describes how a user interface requests the value.
	UI *UIHint `yaml:"ui"`
}

// EntityID is the id.
func (v *Variable) EntityID() string { return v.ID }

// Kind is KindVariable.
func (v *Variable) Kind() Kind { return KindVariable }

// IsOptional reports whether the value may be null or unset.
func (v *Variable) IsOptional() bool { return v.Optional || v.Type.Optional }

// UIHint describes how a user interface requests a value.
type UIHint struct {
	Positioned
	// Widget is the input element for a text variable: text (one line) or textarea.
	Widget string `yaml:"widget" validate:"omitempty,oneof=text textarea"`
	// Accept is the MIME type that a file variable takes.
	Accept string `yaml:"accept"`
}
