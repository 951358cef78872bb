// @ts-nocheck -- Its package is in this folder alone.
import { env } from 'node:process'
import { runConformanceTests } from '@durable-streams/server-conformance-tests'

runConformanceTests({
  baseUrl: env['STREAMS_URL'] ?? '',
  longPollTimeoutMs: Number(env['STREAMS_LONG_POLL']),
})
