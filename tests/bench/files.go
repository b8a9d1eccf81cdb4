// SPDX-License-Identifier: Apache-2.0

// files DIRECTORY COUNT SIZE: writes COUNT files of SIZE bytes, reads them back, and prints one JSON result with the
// SHA-256 of each, as a runner written with Go's standard library would. Each write is a temporary file and a rename.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

type step struct {
	Path    string `json:"path"`
	Content string `json:"content,omitempty"`
	Size    int    `json:"size_bytes"`
	Sha256  string `json:"sha256"`
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func write(path string, content []byte) (step, error) {
	temporary := path + ".tmp"
	if err := os.WriteFile(temporary, content, 0o644); err != nil {
		return step{}, err
	}
	return step{Path: path, Size: len(content), Sha256: digest(content)}, os.Rename(temporary, path)
}

func read(path string) (step, error) {
	content, err := os.ReadFile(path)
	return step{Path: path, Content: string(content), Size: len(content), Sha256: digest(content)}, err
}

func run(directory string, count, size int) ([]step, error) {
	var steps []step
	content := []byte(strings.Repeat("x", size))
	for i := 0; i < 2*count; i++ {
		path := filepath.Join(directory, fmt.Sprintf("file%d", i%count))
		var done step
		var err error
		if i < count {
			done, err = write(path, content)
		} else {
			done, err = read(path)
		}
		if err != nil {
			return nil, err
		}
		steps = append(steps, done)
	}
	return steps, nil
}

func main() {
	count, _ := strconv.Atoi(os.Args[2])
	size, _ := strconv.Atoi(os.Args[3])
	steps, err := run(os.Args[1], count, size)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{"status": "success", "steps": steps})
}
