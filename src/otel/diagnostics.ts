import type { Meter } from '@opentelemetry/api'
import type { Observable } from 'rxjs'
import { ignoringErrors } from '../protocol/observers.ts'
import type { Diagnostic } from '../sources/context.ts'
import { errorType, templateOf } from './attributes.ts'

/** Counts a client's retries, reconnects and dropped duplicates. Returns a function that ends this. */
export function countDiagnostics(meter: Meter, diagnostics: Observable<Diagnostic>): () => void {
  const retries = meter.createCounter('rivulet.client.retries', {
    description: 'Requests that failed and are sent again',
    unit: '{retry}',
  })
  const reconnects = meter.createCounter('rivulet.client.reconnects', {
    description: 'Connections of streams, polls and fetches for webhooks that ended and begin again',
    unit: '{reconnect}',
  })
  const duplicates = meter.createCounter('rivulet.client.duplicates', {
    description: 'Duplicates of emitted events that were dropped',
    unit: '{event}',
  })

  function count(diagnostic: Diagnostic): void {
    switch (diagnostic.kind) {
      case 'retry': {
        const { method, path, error } = diagnostic
        return retries.add(1, { 'http.request.method': method, ...templateOf(path), ...errorType(error) })
      }
      case 'reconnect':
      case 'expansion_retry': {
        const { source, cause } = diagnostic
        return reconnects.add(1, { ...templateOf(source), ...(cause !== undefined && errorType(cause)) })
      }
      case 'duplicate': {
        const { type, via } = diagnostic.event
        return duplicates.add(1, { 'rivulet.event.type': type, 'rivulet.event.via': via })
      }
    }
  }

  const subscription = diagnostics.subscribe((diagnostic) => ignoringErrors(() => count(diagnostic)))
  return () => subscription.unsubscribe()
}
