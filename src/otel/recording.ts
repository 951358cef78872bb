import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import type { Meter, Tracer } from '@opentelemetry/api'
import type { LogObserver } from '../log/event-log/observer.ts'
import { ignoringErrors } from '../protocol/observers.ts'
import { DURATION_BUCKETS, errorType, secondsSince } from './attributes.ts'

/** By how much the clock of a service may be ahead of that of the log, in ms. Event times beyond it are counted. */
const MAX_LEAD = 1_000

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
  const futureEvents = meter.createCounter('rivulet.log.future_events', {
    description: 'Events that were appended with a time more than a second ahead of the log',
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
        const limit = Date.now() - appended.ahead + MAX_LEAD
        const future = given.filter(
          ({ event: { time } }) => typeof time === 'string' && Date.parse(time) > limit,
        ).length
        if (future > 0) ignoringErrors(() => futureEvents.add(future))
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
