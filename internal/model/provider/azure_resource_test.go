package provider

import "testing"

// Endpoints of projects in Azure AI Foundry take tokens of another resource.
func TestAzureResource(t *testing.T) {
	for host, want := range map[string]string{
		"my-resource.openai.azure.com":     "https://cognitiveservices.azure.com",
		"My-Project.services.ai.azure.com": "https://ai.azure.com",
		"gateway.local":                    "https://cognitiveservices.azure.com",
	} {
		if got := azureResource(host); got != want {
			t.Errorf("%s: got %s", host, got)
		}
	}
}
