import { defer } from 'rxjs'
import type { MonoTypeOperatorFunction } from 'rxjs'
import { reconnect } from '../../../operators/reconnect.ts'
import type { ReconnectOptions } from '../../../operators/reconnect.ts'
import { isRetryable } from '../../protocol/backoff.ts'
import type { Context } from '../context.ts'
import { ProtocolErrorLimit } from './protocol-error-limit.ts'

/**
 * `reconnect` as the sources use it: with the client's backoff and time, and a report to the diagnostics. An error without `retryable`
 * fails with the fifth wrong answer in a row.
 */
export function withReconnect<T>(
  context: Context,
  source: string,
  options: Pick<ReconnectOptions<T>, 'done' | 'onReconnect' | 'progress' | 'retryable' | 'serverDelay'> = {},
): MonoTypeOperatorFunction<T> {
  const { backoff, scheduler, random, report } = context
  return (attempts) =>
    defer(() => {
      const limit = new ProtocolErrorLimit()
      return attempts.pipe(
        reconnect({
          retryable: (error) => limit.permitsRetry(error) && isRetryable(error),
          ...backoff,
          ...options,
          scheduler,
          random,
          onReconnect(info) {
            report({ kind: 'reconnect', source, ...info })
            options.onReconnect?.(info)
          },
        }),
      )
    })
}
