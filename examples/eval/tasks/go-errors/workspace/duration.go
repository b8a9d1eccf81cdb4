package main

import (
	"fmt"
	"strconv"
)

// parse gives the seconds of "90s", "15m" or "2h".
func parse(text string) int {
	if len(text) < 2 {
		panic(fmt.Sprintf("%q is too short", text))
	}
	factor, known := map[byte]int{'s': 1, 'm': 60, 'h': 3600}[text[len(text)-1]]
	if !known {
		panic(fmt.Sprintf("%q has no unit", text))
	}
	number, err := strconv.Atoi(text[:len(text)-1])
	if err != nil {
		panic(fmt.Sprintf("%q is no number", text[:len(text)-1]))
	}
	return number * factor
}
