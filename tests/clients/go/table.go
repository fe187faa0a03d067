package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// table sends a message for each of COUNT keys, and then another one. A table view has the newest
// of each key, both of messages before it and of later ones.
func table(ctx context.Context, client pulsar.Client, asked options, got seen) error {
	texts := pulsar.NewStringSchema(nil)
	producer, err := client.CreateProducer(pulsar.ProducerOptions{
		Topic: asked.topic, Schema: texts, DisableBatching: true,
	})
	if err != nil {
		return err
	}
	defer producer.Close()
	if err := sendKeyed(ctx, producer, asked.count, 0); err != nil {
		return err
	}
	view, err := client.CreateTableView(pulsar.TableViewOptions{
		Topic: asked.topic, Schema: texts, SchemaValueType: reflect.TypeFor[*string](),
	})
	if err != nil {
		return err
	}
	defer view.Close()
	if got["before"], err = newest(ctx, view, asked.count, 0); err != nil {
		return err
	}
	if err := sendKeyed(ctx, producer, asked.count, asked.count); err != nil {
		return err
	}
	got["after"], err = newest(ctx, view, asked.count, asked.count)
	return err
}

// sendKeyed sends a message with the number first + n for the key n.
func sendKeyed(ctx context.Context, producer pulsar.Producer, count, first int) error {
	for key := range count {
		text := strconv.Itoa(first + key)
		message := &pulsar.ProducerMessage{Value: text, Key: fmt.Sprintf("key-%d", key)}
		if _, err := producer.Send(ctx, message); err != nil {
			return err
		}
	}
	return nil
}

// newest waits until the table has this many values from first on, and returns them.
func newest(ctx context.Context, view pulsar.TableView, count, first int) ([]int, error) {
	for {
		var numbers []int
		for _, value := range view.Entries() {
			number, err := strconv.Atoi(*value.(*string))
			if err != nil {
				return nil, err
			}
			if number >= first {
				numbers = append(numbers, number)
			}
		}
		slices.Sort(numbers)
		if len(numbers) == count {
			return numbers, nil
		}
		if !sleepUntil(ctx, time.Now().Add(10*time.Millisecond)) {
			return numbers, ctx.Err()
		}
	}
}
