import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import type { Meter, Tracer } from '@opentelemetry/api'
import type { LogObserver } from '../log/event-log/observer.ts'
import { ignoringErrors } from '../protocol/observers.ts'
import { DURATION_BUCKETS, errorType, secondsSince } from './attributes.ts'

/** Measures and traces what `log.record` appends. */
export function appendObserver(meter: Meter, tracer: Tracer): LogObserver {
  const entries = meter.createCounter('rivulet.log.recorded', {
    description: 'Entries that were appended',
    unit: '{entry}',
  })
  const duplicates = meter.createCounter('rivulet.log.duplicates', {
    description: 'Received events that were skipped, since the log has them',
    unit: '{event}',
  })
  const duration = meter.createHistogram('rivulet.log.append.duration', {
    description: 'Duration of appends',
    unit: 's',
    advice: { explicitBucketBoundaries: DURATION_BUCKETS },
  })
  return {
    async append(given, proceed) {
      const start = performance.now()
      const span = ignoringErrors(() =>
        tracer.startSpan('rivulet.log append', {
          kind: SpanKind.INTERNAL,
          attributes: { 'rivulet.log.append.events': given.length },
        }),
      )
      try {
        const appended = await proceed()
        ignoringErrors(() => entries.add(appended.entries))
        ignoringErrors(() => duplicates.add(appended.duplicates))
        ignoringErrors(() => duration.record(secondsSince(start)))
        return appended
      } catch (error) {
        ignoringErrors(() => span?.setAttributes(errorType(error)).setStatus({ code: SpanStatusCode.ERROR }))
        ignoringErrors(() => duration.record(secondsSince(start), errorType(error)))
        throw error
      } finally {
        ignoringErrors(() => span?.end())
      }
    },
  }
}
