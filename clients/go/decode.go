// SPDX-License-Identifier: Apache-2.0

package cynodesba

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// DecodeResult reads a result. A field that this package does not know is an error: the result is of a newer version.
func DecodeResult(r io.Reader) (*Result, error) {
	var result Result
	return &result, decode(r, &result, "result")
}

// DecodeJob reads a job, with the same rule.
func DecodeJob(r io.Reader) (*Job, error) {
	var job Job
	return &job, decode(r, &job, "job")
}

func decode(r io.Reader, into any, what string) error {
	decoder := json.NewDecoder(r)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("decode the %s: %w", what, err)
	}
	return nil
}

// StepResult reads the structured answer of a step into the type of its kind, such as RunCommandResult.
func StepResult(step ResultStep, into any) error {
	return decode(bytes.NewReader(step.Result), into, "result of step "+step.ID)
}
