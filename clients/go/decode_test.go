// SPDX-License-Identifier: Apache-2.0

package cynodesba

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// stepResults has the type of each kind of step's result.
var stepResults = map[string]any{
	"apply_unified_diff": &ApplyUnifiedDiffResult{}, "list_tree": &ListTreeResult{}, "read_file": &ReadFileResult{},
	"replace_in_file": &ReplaceInFileResult{}, "run_command": &RunCommandResult{}, "search_files": &SearchFilesResult{},
	"write_file": &WriteFileResult{},
}

func values(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// sameAgain holds the encoding of what was decoded to the text.
func sameAgain(t *testing.T, decoded any, text []byte) {
	t.Helper()
	encoded, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := values(t, encoded), values(t, text); !reflect.DeepEqual(got, want) {
		t.Errorf("encoded again it is\n%s\nnot\n%s", encoded, text)
	}
}

func TestJobsOfTheExamples(t *testing.T) {
	paths, _ := filepath.Glob("../../examples/*/job.json")
	count := 0
	for _, path := range paths {
		if strings.Contains(path, "refused") || strings.Contains(path, "deployed-node") {
			continue // a mistake on purpose; fields in the words of a node
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeJob(strings.NewReader(string(text))); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		count++
	}
	if count < 5 {
		t.Errorf("only %d jobs were found", count)
	}
}

// The results that the runner writes for the examples; SBA_EXAMPLES names where they are.
func TestResultsOfTheExamples(t *testing.T) {
	directory := os.Getenv("SBA_EXAMPLES")
	if directory == "" {
		t.Skip("SBA_EXAMPLES is not set")
	}
	paths, _ := filepath.Glob(filepath.Join(directory, "*", "job", "result.json"))
	if len(paths) < 4 {
		t.Fatalf("only %d results were found", len(paths))
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		result, err := DecodeResult(strings.NewReader(string(text)))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		sameAgain(t, result, text)
		for _, step := range result.Steps {
			if into := stepResults[step.Type]; into != nil && step.Result != nil {
				if err := StepResult(step, into); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		}
	}
}

func TestAJobFromGoIsValid(t *testing.T) {
	binary := os.Getenv("SBA_BINARY")
	if binary == "" {
		t.Skip("SBA_BINARY is not set")
	}
	job := Job{
		ProtocolVersion: "1.0", JobID: "j", TaskID: "t", Constraints: JobConstraints{MaxRuntimeSeconds: 5, MaxOutputBytes: 1000},
		Steps: []JobStep{},
	}
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	check := exec.Command(binary, "--validate", "-")
	check.Stdin = strings.NewReader(string(text))
	if output, err := check.CombinedOutput(); err != nil {
		t.Errorf("%s: %s", err, output)
	}
}
