package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// keys is the number of different keys, used in turn.
const keys = 10

// receiptPatience is how long to wait for outstanding receipts at the end.
const receiptPatience = 30 * time.Second

// sent is what became of the sent messages, whose content is their number.
type sent struct {
	Acknowledged ranges   `json:"acknowledged"`
	Errors       []string `json:"errors"`
	LongestMs    float64  `json:"longest_send_ms"`

	mutex sync.Mutex
}

func produce(ctx context.Context, client pulsar.Client, asked options) (any, error) {
	producer, err := client.CreateProducer(pulsar.ProducerOptions{
		Topic:           asked.topic,
		DisableBatching: !asked.batch,
		// Long enough that batches hold several messages.
		BatchingMaxPublishDelay: 10 * time.Millisecond,
		SendTimeout:             asked.patience,
	})
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	sayReady()
	report := &sent{Acknowledged: ranges{}, Errors: []string{}}
	sendAll(ctx, producer, asked, report)
	flushing, expire := context.WithTimeout(context.Background(), receiptPatience)
	defer expire()
	if err := producer.FlushWithCtx(flushing); err != nil {
		report.failed(err)
	}
	report.mutex.Lock() // a receipt may still arrive
	defer report.mutex.Unlock()
	return sent{
		Acknowledged: report.Acknowledged, Errors: report.Errors, LongestMs: report.LongestMs,
	}, nil
}

// sendAll sends at a steady pace until everything is sent or ctx ends. It waits for no receipts; if
// serial, it waits for each one, and ends at the first failure.
func sendAll(ctx context.Context, producer pulsar.Producer, asked options, report *sent) {
	start := time.Now()
	for number := 0; asked.count == 0 || number < asked.count; number++ {
		if !sleepUntil(ctx, start.Add(time.Duration(number)*asked.interval)) {
			return
		}
		message := &pulsar.ProducerMessage{Payload: []byte(strconv.Itoa(number))}
		if asked.key {
			message.Key = fmt.Sprintf("key-%d", number%keys)
		}
		begun := time.Now()
		if asked.serial {
			_, err := producer.Send(context.Background(), message)
			report.settled(number, time.Since(begun), err)
			if err != nil {
				return
			}
			continue
		}
		producer.SendAsync(context.Background(), message,
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				report.settled(number, time.Since(begun), err)
			})
	}
}

// sleepUntil returns false if ctx ended meanwhile.
func sleepUntil(ctx context.Context, when time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(when)):
		return ctx.Err() == nil
	}
}

func (report *sent) settled(number int, took time.Duration, err error) {
	report.mutex.Lock()
	defer report.mutex.Unlock()
	report.LongestMs = max(report.LongestMs, float64(took.Microseconds())/1000)
	if err != nil {
		report.Errors = noted(report.Errors, err)
		return
	}
	report.Acknowledged.add(number)
}

func (report *sent) failed(err error) {
	report.mutex.Lock()
	defer report.mutex.Unlock()
	report.Errors = noted(report.Errors, err)
}
