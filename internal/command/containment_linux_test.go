package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// readPy is a program, a module and a server that reads a file.
const readPy = `
import json, sys
def read() -> str:
    try:
        return open('FILE').read()
    except OSError as e:
        return type(e).__name__

if __name__ == '__main__' and sys.argv[1:] == ['serve']:
    for line in sys.stdin:
        r = json.loads(line)
        if 'id' not in r:
            continue
        result = {'initialize': {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 's', 'version': '1'}},
                  'tools/list': {'tools': [{'name': 'read', 'inputSchema': {'type': 'object'}}]},
                  'tools/call': {'content': [{'type': 'text', 'text': read()}]}}.get(r['method'], {})
        print(json.dumps({'jsonrpc': '2.0', 'id': r['id'], 'result': result}), flush=True)
elif __name__ == '__main__':
    print(json.dumps(read()))
`

const containmentDocument = `
id: contained
tools:
  - {type: CommandTool, id: command, name: command, description: d, program: python3, args: [FOLDER/reader.py], outputs: [{id: text, type: text}]CONTAINED}
  - {type: PythonFunctionTool, id: python, name: python, description: d, module_path: reader, function_name: read, outputs: [{id: text, type: text}]CONTAINED}
  - {type: MCPTool, id: mcp, command: python3, args: [FOLDER/reader.py, serve], tools: [read]CONTAINED}
flows:
  - {id: f, variables: [{id: text, type: any}], inputs: [], outputs: [text], steps: [
      {type: InvokeTool, id: call, tool: TOOL, output_bindings: {text: text}, outputs: [text]}]}
`

// TestTools_Containment lets a tool of each type read a file outside of its folders, with and
// without containment, and with a policy that requires it.
func TestTools_Containment(t *testing.T) {
	for _, name := range []string{"/usr/bin/python3", "bwrap"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("QTYPE_CI") != "" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	folder, other := t.TempDir(), filepath.Join(t.TempDir(), "key")
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	testkit.Must(t, os.WriteFile(other, []byte("marked"), 0o600))
	testkit.Must(t, os.WriteFile(policy, []byte("containment: [bwrap, docker]\n"), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "reader.py"), []byte(strings.ReplaceAll(readPy, "FILE", other)), 0o600))
	run := func(tool, containment, policy string) string {
		text := strings.NewReplacer("CONTAINED", containment, "TOOL", tool, "FOLDER", folder).Replace(containmentDocument)
		testkit.Must(t, os.WriteFile(filepath.Join(folder, "app.qtype.yaml"), []byte(text), 0o600))
		cmd := testkit.Command(t, "qtype", "run", "app.qtype.yaml", "--ephemeral", "-q")
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "QTYPE_POLICY="+policy, "PATH=/usr/bin:/bin")
		out, err := cmd.CombinedOutput()
		return fmt.Sprintf("%s%v", out, err)
	}
	for _, tool := range []string{"command", "python", "mcp"} {
		for _, c := range []struct{ containment, policy, want string }{
			{"", "", "marked"},
			{", containment: {type: bwrap, read: [.]}", "", "FileNotFoundError"},
			{", containment: {type: auto, read: [.]}", policy, "FileNotFoundError"},
			{", containment: {type: none}", policy, "the document may not start a program without containment"},
			{"", policy, "the document may not start a program without containment"},
		} {
			if got := run(tool, c.containment, c.policy); !strings.Contains(got, c.want) || c.want != "marked" && strings.Contains(got, "marked") {
				t.Errorf("%s%s: %s", tool, c.containment, got)
			}
		}
	}
}
