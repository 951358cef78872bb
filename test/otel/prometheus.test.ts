import { PrometheusExporter } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { memoryStore, openLog } from 'rivulet/log'
import { instrument } from 'rivulet/otel'
import { expect, it, onTestFinished } from 'vitest'
import { research } from '../e2e/research.ts'
import { serve } from '../transport/server.ts'

it('are served to Prometheus, with their units, and without ids', async () => {
  const exporter = new PrometheusExporter({ preventServerStart: true })
  const meters = new MeterProvider({ readers: [exporter] })
  onTestFinished(() => meters.shutdown())
  const { origin } = await serve((request, response) => exporter.getMetricsRequestHandler(request, response))
  const { client, group, service } = await research()
  const log = await openLog(memoryStore())
  onTestFinished(() => log.close())
  instrument({ client, log, meter: meters.getMeter('rivulet') })
  // The first stream is cut, so that its client reconnects and receives events again.
  service.faults.add({ kind: 'cut', at: 'line', after: 1, times: 1 })
  const id = await group('a', 'b', 'c')
  const job = log.record({ client, taskGroups: [id] })
  const { promise: isHandled, resolve: handled } = Promise.withResolvers<void>()
  const consuming = log.consume('billing', { types: ['task_run.state'] }, () => handled())
  await job.done
  await isHandled
  await consuming.stop()

  const text = await (await fetch(`${origin}/metrics`)).text()

  expect(text).toContain(
    '# UNIT http_client_request_duration s\n# TYPE http_client_request_duration histogram',
  )
  expect(text).toMatch(
    /^http_client_request_duration_count\{http_request_method="GET",server_address="127\.0\.0\.1",server_port="\d+",url_template="\/v1\/tasks\/groups\/\{taskgroup_id\}\/events",http_response_status_code="200",.*\} \d+$/m,
  )
  expect(text).toMatch(
    /^rivulet_client_reconnects_total\{url_template="\/v1(beta)?\/tasks\/groups\/\{taskgroup_id\}.*\} \d+$/m,
  )
  expect(text).toMatch(/^rivulet_log_recorded_total(?:\{.*\})? [1-9]\d*$/m)
  expect(text).toMatch(/^rivulet_log_append_duration_bucket\{.*le="0\.005".*\} \d+$/m)
  expect(text).toMatch(
    /^messaging_process_duration_count\{messaging_system="rivulet",messaging_operation_name="process",messaging_consumer_group_name="billing",rivulet_reader_kind="consumer",rivulet_event_type="task_run\.state".*\} \d+$/m,
  )
  expect(text).not.toContain(id)
  expect(text).not.toMatch(/trun_|tgrp_/)
  expect(text).not.toContain(service.apiKey)
})
