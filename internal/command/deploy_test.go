package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/testkit"
)

const (
	deployFolder = "../../deploy"
	kubeVersion  = "1.33.0" // a build of helm with go install assumes 1.20
)

// composeFile is the part of a Compose file that is checked.
type composeFile struct {
	Services map[string]struct {
		Image   string
		Command []string
		Deploy  struct{ Replicas int }
	}
}

// TestDeploy_Compose: servers and workers are started with flags that exist, and every
// setting that the file needs is in the example.
func TestDeploy_Compose(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(deployFolder, "compose/compose.yaml"))
	testkit.Must(t, err)
	var file composeFile
	testkit.Must(t, yaml.Unmarshal(raw, &file))
	for _, name := range []string{"serve", "worker"} {
		if file.Services[name].Deploy.Replicas != 2 {
			t.Errorf("%s has %d replicas", name, file.Services[name].Deploy.Replicas)
		}
		checkFlags(t, file.Services[name].Command)
	}
	example, err := os.ReadFile(filepath.Join(deployFolder, "compose/example.env"))
	testkit.Must(t, err)
	for _, found := range regexp.MustCompile(`\$\{(\w+):`).FindAllSubmatch(raw, -1) {
		if !bytes.Contains(example, append(append([]byte("\n"), found[1]...), '=')) {
			t.Errorf("example.env does not have %s", found[1])
		}
	}
}

// checkFlags fails the test if a command line of the program has unknown flags.
func checkFlags(t *testing.T, args []string) {
	t.Helper()
	root := newRoot(&cli.Streams{})
	command, rest, err := root.Find(args)
	if err != nil || command == root {
		t.Errorf("%v: %v", args, err)
		return
	}
	if err := command.ParseFlags(rest); err != nil {
		t.Errorf("%v: %v", args, err)
	}
}

// rendered is a manifest of the chart.
type rendered struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Template struct {
			Spec struct {
				Containers []struct{ Args []string }
			}
		}
	}
}

// chartValues are settings of the chart that change what it makes.
func chartValues() map[string]struct {
	set   []string
	kinds string
} {
	return map[string]struct {
		set   []string
		kinds string
	}{
		"default": {nil, "ConfigMap Deployment PodDisruptionBudget Service"},
		"replicas": {[]string{"serve.replicas=3", "store=postgres://qtype@db/qtype", "secret=keys", "application.existingConfigMap=app"},
			"Deployment PodDisruptionBudget Service"},
		"all": {[]string{"store=redis://db:6379/0", "serve.autoscaling.enabled=true", "ingress.enabled=true", "ingress.host=a.example.com", "ingress.className=nginx", "ingress.tlsSecret=tls",
			"networkPolicy.enabled=true", "networkPolicy.ingressNamespace=ingress", "worker.replicas=2", "temporal.address=temporal:7233", "temporal.blobsClaim=blobs", "serve.args={--no-ui}",
			"imagePullSecrets[0].name=registry", "podAnnotations.team=a", "nodeSelector.disk=ssd"},
			"ConfigMap Deployment Deployment HorizontalPodAutoscaler Ingress NetworkPolicy PodDisruptionBudget Service"},
		"bucket": {[]string{"worker.replicas=1", "temporal.address=temporal:7233", "temporal.blobs=s3://rows/runs", "serviceMonitor.enabled=true", "serviceMonitor.keySecret=keys"},
			"ConfigMap Deployment Deployment PodDisruptionBudget PodMonitor Service ServiceMonitor"},
		"workers": {[]string{"worker.replicas=2", "temporal.address=temporal:7233", "temporal.blobs=s3://rows/runs", "worker.autoscaling.enabled=true", "worker.autoscaling.prometheus=http://prometheus:9090",
			"worker.former[0].name=v1", "worker.former[0].configMap=app-v1", "worker.former[0].tag=0.1.0"},
			"ConfigMap Deployment Deployment Deployment PodDisruptionBudget ScaledObject Service"},
		"engine": {[]string{"serve.engine=temporal", "serve.replicas=2", "store=postgres://qtype@db/qtype", "worker.replicas=2", "temporal.address=temporal:7233", "temporal.blobs=s3://rows/runs"},
			"ConfigMap Deployment Deployment PodDisruptionBudget Service"},
	}
}

// TestDeploy_Chart: the chart has no errors and warnings of helm lint; what it makes is valid for
// Kubernetes and starts the program with flags that exist.
func TestDeploy_Chart(t *testing.T) {
	helm, check, conform := deployTool(t, "QTYPE_HELM"), deployTool(t, "QTYPE_KUBERNETES_VALIDATE"), deployTool(t, "QTYPE_KUBECONFORM")
	schemas := filepath.Join(deployTool(t, "QTYPE_KUBERNETES_SCHEMAS"), "{{.ResourceKind}}{{.KindSuffix}}.json")
	chart := filepath.Join(deployFolder, "helm/qtype")
	for name, c := range chartValues() {
		var args []string
		for _, s := range c.set {
			args = append(args, "--set", s)
		}
		output(t, helm, append([]string{"lint", "--strict", "--kube-version", kubeVersion, chart}, args...)...)
		text := output(t, helm, append([]string{"template", "assistant", chart, "--kube-version", kubeVersion}, args...)...)
		var kinds, checked []string
		for part := range strings.SplitSeq(text, "\n---") {
			var m rendered
			testkit.Must(t, yaml.Unmarshal([]byte(part), &m))
			if m.Kind == "" {
				continue
			}
			kinds = append(kinds, m.Kind)
			for _, container := range m.Spec.Template.Spec.Containers {
				checkFlags(t, container.Args)
			}
			if !slices.Contains([]string{"PodMonitor", "ScaledObject", "ServiceMonitor"}, m.Kind) { // types of operators
				checked = append(checked, part)
			}
		}
		path := filepath.Join(t.TempDir(), "manifest.yaml")
		testkit.Must(t, os.WriteFile(path, []byte(strings.Join(checked, "\n---")), 0o600))
		output(t, check, "--strict", "--quiet", path)
		output(t, conform, "-strict", "-schema-location", schemas, path)
		if got := sortedWords(kinds); got != c.kinds {
			t.Errorf("%s: the chart makes %s, want %s", name, got, c.kinds)
		}
	}
}

// TestDeploy_ChartErrors: values that cannot work are refused with a reason.
func TestDeploy_ChartErrors(t *testing.T) {
	helm := deployTool(t, "QTYPE_HELM")
	for set, want := range map[string]string{
		"serve.replicas=2":                          "more than one replica needs a store on a server",
		"serve.replicas=2,store=sqlite:x":           "more than one replica needs a store on a server",
		"worker.replicas=1":                         "workers need HOST:PORT of Temporal",
		"worker.replicas=1,temporal.address=a:7233": "needs a claim that many pods can mount",
		"serve.engine=temporal":                     "worker.replicas is 0",
		"serve.engine=temporal,worker.replicas=1,temporal.address=a:7233,temporal.blobsClaim=c": "share a store on a server",
		"serve.engine=cloud":          "engine",
		"ingress.enabled=true":        "the name of the server is needed",
		"serviceMonitor.enabled=true": "API key of /metrics is needed",
		"worker.replicas=1,temporal.address=a:7233,temporal.blobs=s3://b/c,worker.autoscaling.enabled=true": "the address of Prometheus is needed",
		"serve.replica=2":  "replica",
		"store=mysql://db": "store",
	} {
		out, err := testkit.Command(t, helm, "template", "assistant", filepath.Join(deployFolder, "helm/qtype"), "--kube-version", kubeVersion, "--set", set).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, %s, want %q", set, err, out, want)
		}
	}
}

// TestDeploy_ComposeSchema checks the Compose file with the specification's schema.
func TestDeploy_ComposeSchema(t *testing.T) {
	output(t, deployTool(t, "QTYPE_CHECK_JSONSCHEMA"), "--builtin-schema", "vendor.compose-spec", filepath.Join(deployFolder, "compose/compose.yaml"))
}

// TestDeploy_Prometheus checks the configuration and the expressions of the dashboard and of
// docs/deploy.md with Prometheus.
func TestDeploy_Prometheus(t *testing.T) {
	promtool := deployTool(t, "QTYPE_PROMTOOL")
	output(t, promtool, "check", "config", "--syntax-only", filepath.Join(deployFolder, "compose/prometheus.yml"))
	raw, err := os.ReadFile(filepath.Join(deployFolder, "compose/grafana/qtype.json"))
	testkit.Must(t, err)
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	testkit.Must(t, json.Unmarshal(raw, &d))
	var rules []map[string]string
	add := func(expr string) {
		expr = strings.NewReplacer("$job", "qtype", "$__rate_interval", "1m").Replace(expr)
		rules = append(rules, map[string]string{"record": fmt.Sprintf("rule:%d", len(rules)), "expr": expr})
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			add(target.Expr)
		}
	}
	page, err := os.ReadFile("../../docs/deploy.md")
	testkit.Must(t, err)
	for _, found := range regexp.MustCompile("(?m)^\\| `(.*qtype_.*)` \\|").FindAllSubmatch(page, -1) {
		add(string(found[1]))
	}
	file, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	testkit.Must(t, err)
	path := filepath.Join(t.TempDir(), "rules.yaml")
	testkit.Must(t, os.WriteFile(path, file, 0o600))
	if out := output(t, promtool, "check", "rules", path); !strings.Contains(out, fmt.Sprintf("%d rules found", len(rules))) || len(rules) < 25 {
		t.Errorf("%d rules: %s", len(rules), out)
	}
}

// deployTool returns the program that an environment variable names.
func deployTool(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	switch {
	case path != "":
	case os.Getenv("QTYPE_CI") != "":
		t.Fatalf("%s is not set", variable)
	default:
		t.Skipf("SKIPPED: set %s to the program, as .ci/run does", variable)
	}
	return path
}

// output returns the output of a program that must succeed.
func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := testkit.Command(t, program, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// sortedWords joins words in alphabetical order.
func sortedWords(words []string) string {
	slices.Sort(words)
	return strings.Join(words, " ")
}
