package main

// Variants appends each ending to the path.
func Variants(path []string, endings ...string) [][]string {
	result := [][]string{}
	for _, ending := range endings {
		result = append(result, append(path, ending))
	}
	return result
}
