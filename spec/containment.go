package spec

// Containment limits what the program of a tool can reach: only the files that are declared, no network unless it is
// declared, no other processes, and of the environment only what the tool declares.
type Containment struct {
	Positioned
	// Type is how the program is contained: bwrap (bubblewrap, on Linux), docker (a container of an image), auto (bwrap if it works on this computer, otherwise not at all, with a warning) or none.
	Type string `yaml:"type" jsonschema:"required,example=auto" validate:"oneof=auto bwrap docker none"`
	// Image is the image of the container; it is required with docker.
	Image string `yaml:"image"`
	// Network lets the program use the network.
	Network bool `yaml:"network" default:"false"`
	// Read lists files and folders that the program can read; relative ones are relative to the folder of the document.
	Read []string `yaml:"read"`
	// Write lists files and folders that the program can read and write; relative ones are relative to the folder of the document.
	Write []string `yaml:"write"`
}

// The values of Containment.Type.
const (
	ContainmentAuto   = "auto"   // bwrap if it works
	ContainmentBwrap  = "bwrap"  // bubblewrap
	ContainmentDocker = "docker" // a container of an image
	ContainmentNone   = "none"   // none
)
