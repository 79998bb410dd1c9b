package a2a

import (
	"cmp"
	"fmt"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/schema"
)

// modes are the media types that all skills read and write.
var modes = []string{"text/plain", "application/json"}

// card returns the card of the agent with the flows that the caller may call.
func (q *requests) card() *sdk.AgentCard {
	c := &sdk.AgentCard{
		Version:            cmp.Or(q.Version, "0"),
		Capabilities:       sdk.AgentCapabilities{Streaming: true, ExtendedAgentCard: q.Authentication != "none"},
		DefaultInputModes:  modes,
		DefaultOutputModes: modes,
		Skills:             []sdk.AgentSkill{},
	}
	path := "/a2a"
	if q.flow != nil {
		path = "/flows/" + q.flow.ID() + path
		c.Name, c.Description = q.flow.ID(), describe(q.flow)
		c.Skills = append(c.Skills, skill(q.flow))
	} else {
		application := q.app.App.Spec()
		c.Name, c.Description = application.ID, cmp.Or(application.Description, "The application "+application.ID)
		for _, f := range q.app.Flows {
			if access.Allowed(f.Spec, q.principal) {
				c.Skills = append(c.Skills, skill(f))
			}
		}
	}
	current := sdk.NewAgentInterface(q.address+path, sdk.TransportProtocolJSONRPC)
	former := sdk.NewAgentInterface(q.address+path, sdk.TransportProtocolJSONRPC)
	former.ProtocolVersion = sdk.ProtocolVersion(formerVersion)
	c.SupportedInterfaces = []*sdk.AgentInterface{current, former}
	q.secure(c)
	return c
}

// secure declares which credentials clients need.
func (q *requests) secure(c *sdk.AgentCard) {
	bearer := sdk.HTTPAuthSecurityScheme{Scheme: "Bearer", Description: "An API key"}
	switch q.Authentication {
	case "none":
		return
	case "oidc":
		bearer.BearerFormat, bearer.Description = "JWT", "A token of the OpenID provider, or an API key"
	}
	c.SecuritySchemes = sdk.NamedSecuritySchemes{"bearer": bearer}
	c.SecurityRequirements = sdk.SecurityRequirementsOptions{{"bearer": {}}}
	if q.Authentication == "key" {
		c.SecuritySchemes["apiKey"] = sdk.APIKeySecurityScheme{Location: sdk.APIKeySecuritySchemeLocationHeader, Name: "X-API-Key"}
		c.SecurityRequirements = append(c.SecurityRequirements, sdk.SecurityRequirements{"apiKey": {}})
	}
}

// skill describes a flow.
func skill(f *schema.Flow) sdk.AgentSkill {
	s := sdk.AgentSkill{ID: f.ID(), Name: f.ID(), Description: describe(f), InputModes: modes, OutputModes: modes}
	if f.Conversational() {
		s.Tags = []string{"conversation"}
		s.Examples = f.Spec.Interface.Examples
		return s
	}
	s.Tags = []string{"form"}
	s.Examples = []string{string(f.Example())}
	s.Description += " Send a data part with " + inputs(f) + "."
	return s
}

func describe(f *schema.Flow) string {
	return cmp.Or(f.Spec.Description, "The flow "+f.ID()+".")
}

// inputs lists the inputs of a flow with their types.
func inputs(f *schema.Flow) string {
	if len(f.Inputs) == 0 {
		return "an empty object"
	}
	var list []string
	for _, v := range f.Inputs {
		list = append(list, fmt.Sprintf("%s (%s)", v.ID, v.Type))
	}
	return strings.Join(list, ", ")
}
