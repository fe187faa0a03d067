package main

import "slices"

// mostErrors is the number of different texts in a report.
const mostErrors = 20

// noted adds a text that is not there yet.
func noted(errors []string, err error) []string {
	if len(errors) >= mostErrors || slices.Contains(errors, err.Error()) {
		return errors
	}
	return append(errors, err.Error())
}

// ranges is a set of numbers: pairs of a first and a last one, in order, with gaps between them.
type ranges [][2]int

// add returns true if the number was not there yet. Numbers come nearly in order, so the search for
// its place starts at the end.
func (set *ranges) add(number int) bool {
	at := len(*set)
	for at > 0 && (*set)[at-1][0] > number {
		at--
	}
	if at > 0 && number <= (*set)[at-1][1] {
		return false
	}
	*set = slices.Insert(*set, at, [2]int{number, number})
	set.join(at)
	set.join(at - 1)
	return true
}

// join merges the pair at this place with the next one, if they touch.
func (set *ranges) join(at int) {
	pairs := *set
	if at < 0 || at+1 >= len(pairs) || pairs[at][1]+1 != pairs[at+1][0] {
		return
	}
	pairs[at][1] = pairs[at+1][1]
	*set = slices.Delete(pairs, at+1, at+2)
}

// size returns the number of numbers.
func (set ranges) size() int {
	size := 0
	for _, pair := range set {
		size += pair[1] - pair[0] + 1
	}
	return size
}
