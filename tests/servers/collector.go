// SPDX-License-Identifier: Apache-2.0

// collector ADDRESS: the OTLP receiver of the OpenTelemetry Collector. Prints "ready", then each request's traces as a line of JSON.
package main

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func main() {
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	conf := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": os.Args[1]}}})
	if err := conf.Unmarshal(config); err != nil {
		panic(err)
	}
	sink, _ := consumer.NewTraces(func(_ context.Context, traces ptrace.Traces) error {
		text, err := (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
		fmt.Println(string(text))
		return err
	})
	receiver, err := factory.CreateTraces(context.Background(), receivertest.NewNopSettings(), config, sink)
	if err != nil {
		panic(err)
	}
	if err := receiver.Start(context.Background(), componenttest.NewNopHost()); err != nil {
		panic(err)
	}
	fmt.Println("ready")
	select {}
}
