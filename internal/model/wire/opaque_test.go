package wire_test

import (
	"strings"
	"testing"
)

// opaqueBodies are rejections without a reason.
var opaqueBodies = map[string]string{
	"openai":         `{"error":{"message":"Bad Request","type":"invalid_request_error","param":null,"code":null}}`,
	"openai empty":   ``,
	"openai text":    `Bad Request`,
	"openai gateway": `{"error":{"message":"Provider returned error","code":400}}`,
	"google":         `{"error":{"code":400,"message":"Request contains an invalid argument.","status":"INVALID_ARGUMENT"}}`,
	"anthropic":      `{"type":"error","error":{"type":"invalid_request_error","message":"Error"}}`,
}

// explainedBodies are rejections with a reason.
var explainedBodies = map[string]string{
	"openai param":     `{"error":{"message":"Bad Request","type":"invalid_request_error","param":"foo"}}`,
	"openai code":      `{"error":{"message":"Bad Request","type":"invalid_request_error","code":"model_not_found"}}`,
	"openai filter":    `{"error":{"message":"","code":"content_filter"}}`,
	"openai model":     `{"error":{"message":"The model x does not exist","type":"invalid_request_error"}}`,
	"openai image":     `{"error":{"message":"Invalid image data.","type":"invalid_request_error"}}`,
	"openai page":      `<html>Bad Request</html>`,
	"google field":     `{"error":{"code":400,"message":"Request contains an invalid argument.","status":"INVALID_ARGUMENT","details":[{"fieldViolations":[{"field":"tools[0]"}]}]}}`,
	"anthropic credit": `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`,
	"anthropic":        `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid signature in thinking block"}}`,
	"mistral schema":   `{"object":"error","message":"Invalid tool schema","type":"invalid_request_error","code":"3000"}`,
	"ollama":           `{"error":"invalid message content type"}`,
}

// TestOpaque: only a rejection that names nothing may be one of a request that is too long.
func TestOpaque(t *testing.T) {
	for opaque, bodies := range map[bool]map[string]string{true: opaqueBodies, false: explainedBodies} {
		for name, body := range bodies {
			client, _, _ := strings.Cut(name, " ")
			if e := rejectedWith(t, client, 400, body); e.Opaque != opaque || e.TooLong {
				t.Errorf("%s: opaque %v, too long %v: %v", name, e.Opaque, e.TooLong, e)
			}
		}
	}
	if e := rejectedWith(t, "openai", 422, ""); e.Opaque {
		t.Errorf("422: %+v", e)
	}
}
