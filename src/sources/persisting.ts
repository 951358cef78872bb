import type { MonoTypeOperatorFunction } from 'rxjs'
import { reconnect } from '../../operators/reconnect.ts'
import type { ReconnectConfig } from '../../operators/reconnect.ts'
import type { Context } from './context.ts'

/** `reconnect` as the sources use it: with the client's backoff and time, and a report to the diagnostics. */
export function persisting<T>(
  context: Context,
  source: string,
  config: Pick<ReconnectConfig<T>, 'done' | 'progress' | 'retryable' | 'serverDelay'> = {},
): MonoTypeOperatorFunction<T> {
  const { backoff, scheduler, random, report } = context
  return reconnect({
    ...backoff,
    ...config,
    scheduler,
    random,
    onReconnect: (info) => report({ kind: 'reconnect', source, ...info }),
  })
}
