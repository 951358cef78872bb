import { checkOptions } from '../../protocol/check.ts'
import { checkLog } from '../../protocol/check-log.ts'
import type { EventLog } from '../../log/event-log/event-log.ts'
import type { LogJob } from '../../log/event-log/job.ts'
import { httpSink } from '../../webhooks/http-sink.ts'
import type { WebhookSecrets } from '../../webhooks/signature.ts'
import type { Credentials } from '../../webhooks/sink/endpoint.ts'
import { deliverGrouped } from './grouped-delivery.ts'
import { GROUPED_OPTIONS, groupedSettings } from './grouped-options.ts'
import type { GroupedOptions } from './grouped-options.ts'

/** Settings of {@link notifyWebhook}. */
export interface AlertWebhookOptions extends GroupedOptions {
  /** URL to post to. Only its origin is shown in errors. */
  readonly url: string
  /** Name of the consumer in the log. Default `alert-webhook`. */
  readonly name?: string
  /** Signs each request as the service signs its webhooks (§6.1), with several secrets during a rotation. Default: no signature. */
  readonly secrets?: WebhookSecrets
  /** Credentials for the receiver. Default: the user and the password of the URL, if any. */
  readonly auth?: Credentials
}

/** Maximum number of events in a request. */
const MAX_EVENTS = 100

/**
 * Posts the alerts of a log to a webhook, as CloudEvents 1.0 in JSON. A new name begins at the end of the log.
 *
 * Without `grouping`, each event is a request with `application/cloudevents+json`, and the events of an alert follow one
 * another. With it, a request is a batch of up to 100, `application/cloudevents-batch+json`. Events that `limit` has combined are a batch
 * as well.
 *
 * A receiver gets each event at least once, and should ignore an event whose `source` and `id` it already has. Any status but 2xx is a
 * failure (§6.1): the request is sent again, with the same `webhook-id`, for `retryFor`, also after a status that {@link httpSink} takes for permanent. Then the events are dead letters, which
 * `log.deadLetters(name)` hands out again. Redirects are not followed.
 *
 * Rejects, as `done`, if the log fails.
 *
 * @throws ArgumentError at the call, for an invalid setting.
 */
export function notifyWebhook(log: EventLog, options: AlertWebhookOptions): LogJob {
  checkLog(log)
  checkOptions('options', options ?? null, [...GROUPED_OPTIONS, 'url', 'secrets', 'auth'])
  const { url, secrets, auth, fetch, timeout } = options
  // A receiver may be in a private network, as an Alertmanager is.
  const sink = httpSink({ url, secrets, auth, fetch, timeout, allowInsecure: true })
  const settings = groupedSettings('alert-webhook', options)
  return deliverGrouped(log, {
    settings,
    types: ['alert.firing', 'alert.resolved', 'alert.unknown', 'alert.known'],
    maxEvents: MAX_EVENTS,
    // A receiver that is set up wrongly is often mended within an hour, and an alert is worth the requests.
    isRetryable: () => true,
    send(entries, stop) {
      const [only] = entries
      const isAlone = settings.grouping === undefined && entries.length === 1 && only !== undefined
      return sink(isAlone ? only : entries, stop)
    },
  })
}
