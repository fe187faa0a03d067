package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// stream is one producer's messages: when each was sent and settled (0: not yet), in nanoseconds,
// and the number of its error or 0.
type stream struct {
	topic string
	rate  float64
	tag   string

	mutex   sync.Mutex
	sent    []int64
	settled []int64
	codes   []int64
	left    int
}

// burden is all streams of a program; errors are the different error texts.
type burden struct {
	streams []*stream
	begun   time.Time

	mutex  sync.Mutex
	errors []string
}

func readLoad(words []string, into *options) error {
	into.topic, into.file = words[0], words[1]
	return nil
}

// load offers messages at steady rates until ctx ends. ../loads.py explains the words.
func load(ctx context.Context, client pulsar.Client, asked options) (any, error) {
	all := &burden{begun: time.Now(), errors: []string{}}
	var producers []pulsar.Producer
	for number, text := range strings.Split(asked.topic, ",") {
		at := strings.LastIndex(text, "=")
		rate, err := strconv.ParseFloat(text[at+1:], 64)
		if err != nil {
			return nil, err
		}
		producer, err := loaded(client, text[:at], asked)
		if err != nil {
			return nil, err
		}
		producers = append(producers, producer)
		tag := fmt.Sprintf("%s.%d", asked.tag, number)
		all.streams = append(all.streams, &stream{topic: text[:at], rate: rate, tag: tag})
	}
	sayReady()
	for at, producer := range producers {
		go all.offer(ctx, all.streams[at], producer, asked)
	}
	<-ctx.Done()
	for until := time.Now().Add(asked.patience); !all.isSettled() && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	if err := all.write(asked.file); err != nil {
		return nil, err
	}
	say(map[string]bool{"loaded": true})
	os.Exit(0) // a client with unsent messages would take long to close
	return nil, nil
}

func loaded(client pulsar.Client, topic string, asked options) (pulsar.Producer, error) {
	return client.CreateProducer(pulsar.ProducerOptions{
		Topic:                   topic,
		DisableBatching:         asked.batchOf == 0,
		BatchingMaxMessages:     uint(asked.batchOf),
		BatchingMaxPublishDelay: 10 * time.Millisecond,
		MaxPendingMessages:      asked.pending,
		DisableBlockIfQueueFull: asked.whenFull == "fail",
	})
}

// offer sends at a steady rate, and catches up as fast as possible.
func (all *burden) offer(ctx context.Context, one *stream, producer pulsar.Producer, asked options) {
	start := time.Now()
	for number := 0; ctx.Err() == nil; number++ {
		ahead := float64(number+1)/one.rate - time.Since(start).Seconds()
		if ahead > 0.001 && !sleepUntil(ctx, time.Now().Add(time.Duration(ahead*1e9))) {
			return
		}
		content := fmt.Appendf(nil, "%d %s ", number, one.tag)
		if len(content) < asked.size {
			content = append(content, bytes.Repeat([]byte{' '}, asked.size-len(content))...)
		}
		one.mutex.Lock()
		one.sent = append(one.sent, all.now())
		one.settled = append(one.settled, 0)
		one.codes = append(one.codes, 0)
		one.mutex.Unlock()
		producer.SendAsync(context.Background(), &pulsar.ProducerMessage{Payload: content},
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				all.settle(one, number, err)
			})
	}
}

// now reads the monotonic clock.
func (all *burden) now() int64 {
	return all.begun.UnixNano() + time.Since(all.begun).Nanoseconds()
}

func (all *burden) settle(one *stream, number int, err error) {
	code := all.code(err)
	one.mutex.Lock()
	defer one.mutex.Unlock()
	one.settled[number], one.codes[number] = all.now(), code
	one.left++
}

func (all *burden) code(err error) int64 {
	if err == nil {
		return 0
	}
	all.mutex.Lock()
	defer all.mutex.Unlock()
	all.errors = noted(all.errors, err)
	return int64(slices.Index(all.errors, err.Error()) + 1)
}

func (all *burden) isSettled() bool {
	for _, one := range all.streams {
		one.mutex.Lock()
		left := len(one.sent) - one.left
		one.mutex.Unlock()
		if left > 0 {
			return false
		}
	}
	return true
}

// write writes the results so far: receipts may still arrive.
func (all *burden) write(path string) error {
	all.mutex.Lock()
	defer all.mutex.Unlock()
	var topics []string
	var counts []int
	var columns [][]int64
	for _, one := range all.streams {
		one.mutex.Lock()
		defer one.mutex.Unlock()
		topics, counts = append(topics, one.topic), append(counts, len(one.sent))
		columns = append(columns, one.sent, one.settled, one.codes)
	}
	head, err := json.Marshal(map[string]any{"topics": topics, "counts": counts, "errors": all.errors})
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	fmt.Fprintln(out, string(head))
	for _, column := range columns {
		if err := binary.Write(out, binary.LittleEndian, column); err != nil {
			return err
		}
	}
	return out.Flush()
}
