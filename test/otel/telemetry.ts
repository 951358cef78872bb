import { AsyncLocalStorage } from 'node:async_hooks'
import { context, propagation, ROOT_CONTEXT } from '@opentelemetry/api'
import type {
  Attributes,
  Context,
  ContextManager,
  Meter,
  TextMapPropagator,
  Tracer,
} from '@opentelemetry/api'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import type { Histogram } from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base'
import { onTestFinished } from 'vitest'

/** One series of a metric. */
export interface Series {
  readonly attributes: Attributes
  /** Of a histogram, the number of its values. */
  readonly value: number
}

/** Collects into memory with the SDK, until the test ends. */
export function collecting() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1_000_000 })
  const meters = new MeterProvider({ readers: [reader] })
  const spanExporter = new InMemorySpanExporter()
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spanExporter)] })
  onTestFinished(async () => {
    await Promise.all([meters.shutdown(), tracers.shutdown()])
  })
  const metrics = async () => {
    exporter.reset()
    await reader.forceFlush()
    const found = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics)
    return found.flatMap((scope) => scope.metrics)
  }
  return {
    meter: meters.getMeter('test'),
    tracer: tracers.getTracer('test'),
    metrics,
    /** The series of one metric; empty where it has none. */
    async series(name: string): Promise<readonly Series[]> {
      const metric = (await metrics()).find(({ descriptor }) => descriptor.name === name)
      return (metric?.dataPoints ?? []).map(({ attributes, value }) => ({
        attributes,
        value: typeof value === 'number' ? value : (value as Histogram).count,
      }))
    },
    spans: (): readonly ReadableSpan[] => spanExporter.getFinishedSpans(),
  }
}

/** The sum of the values of a metric. */
export const total = (series: readonly Series[]) => series.reduce((sum, { value }) => sum + value, 0)

/** Keeps the active span over promises, until the test ends. */
export function keepContext(): void {
  const storage = new AsyncLocalStorage<Context>()
  const manager: ContextManager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (own, call, thisArg, ...args) => storage.run(own, () => call.apply(thisArg, args)),
    bind: (_, target) => target,
    enable: () => manager,
    disable: () => manager,
  }
  context.setGlobalContextManager(manager)
  onTestFinished(() => context.disable())
}

/** Sends the span's id as the header `traceparent`, until the test ends. */
export function propagateContext(propagator: TextMapPropagator): void {
  propagation.setGlobalPropagator(propagator)
  onTestFinished(() => propagation.disable())
}

/** A meter and a tracer whose instruments and spans throw. */
export function failing(): { readonly meter: Meter; readonly tracer: Tracer } {
  const fail = () => {
    throw new Error('of the telemetry')
  }
  const instrument = () => ({ add: fail, record: fail, addCallback() {}, removeCallback() {} })
  const { meter, tracer } = collecting()
  return {
    meter: new Proxy(meter, { get: () => instrument }),
    tracer: new Proxy(tracer, { get: () => () => new Proxy({}, { get: () => fail }) }),
  }
}
