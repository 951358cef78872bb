import { createServer } from 'node:http'
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { createClient } from 'rivulet'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { instrument } from 'rivulet/otel'

const exporter = new PrometheusExporter({ preventServerStart: true })
const meter = new MeterProvider({ readers: [exporter] }).getMeter('research')

export const client = createClient()
export const log = await openLog(sqliteStore(process.env.EVENT_LOG ?? 'rivulet.db'))
export const telemetry = instrument({ client, log, meter })

/** Prometheus reads http://localhost:9464/metrics. */
export const metrics = createServer((request, response) =>
  exporter.getMetricsRequestHandler(request, response),
)
metrics.listen(process.env.METRICS_PORT ?? 9464)
