import { Observable, Subscriber } from 'rxjs'
import type { ResearchEvent } from '../../protocol/event.ts'
import type { StreamPosition } from '../../protocol/stream-position.ts'
import { RivuletError } from '../../protocol/rivulet-error.ts'

/** A stream of a source, which has a position of its own. */
export interface SourceStream {
  /** Its name, such as `monitors/monitor_1` or `groups/tgrp_1/runs`. Unique among the streams of a service. */
  readonly name: string
  /** The source of its events. A source may have several streams. */
  readonly source: string
}

/** An event, and where its stream stands after it. */
export interface StreamEvent<Event extends ResearchEvent = ResearchEvent> {
  readonly kind: 'event'
  readonly stream: SourceStream
  readonly event: Event
  /**
   * The position from which the stream resumes after this event. Absent if the event does not move it: `source.failed`, `monitor.cancelled`,
   * the `stream.gap` of a monitor. Its text is made when `text` is called: save the last one of a batch.
   */
  readonly position?: StreamPosition | undefined
  /** False for an event that the service has sent again. `watch.positioned` leaves these out. */
  readonly isNew: boolean
  /** Whether the event comes from the first walk through a monitor's past. Absent for streams that do not know it. */
  readonly isBackfill?: boolean
}

/** A change of a stream without an event. */
interface StreamChange {
  readonly stream: SourceStream
  readonly event?: undefined
  readonly position?: undefined
}

/** The service has answered a request of the stream: each page of a poll, each connection. */
interface StreamReached extends StreamChange {
  readonly kind: 'reached'
}

/** The connection has brought something, which need not be an event. At most once a second. */
interface StreamAlive extends StreamChange {
  readonly kind: 'alive'
}

/** The service cannot be reached. The stream goes on trying, and emits this for each attempt. */
interface StreamLost extends StreamChange {
  readonly kind: 'lost'
  readonly error: unknown
}

/** A poll of a monitor begins at the newest event. */
interface StreamPolling extends StreamChange {
  readonly kind: 'polling'
}

/** The stream has emitted all events that the service has: after each poll of a monitor, and at the end of any other stream. */
interface StreamCaughtUp extends Omit<StreamChange, 'position'> {
  readonly kind: 'caughtUp'
  /** Present if the position has changed without an event. */
  readonly position?: StreamPosition | undefined
}

/** What a stream that can resume emits: events with the position after each, and changes of its connection. */
export type StreamItem<Event extends ResearchEvent = ResearchEvent> =
  | StreamEvent<Event>
  | StreamReached
  | StreamAlive
  | StreamLost
  | StreamPolling
  | StreamCaughtUp

/** A saved position of a stream cannot be read: it was damaged, or is another stream's. */
export class StreamPositionError extends RivuletError {
  override readonly name = 'StreamPositionError'
  override readonly code = 'stream_position'
  /** The name of the stream. */
  readonly stream: string

  constructor({ name }: SourceStream) {
    super(
      `the saved position of the stream ${name} cannot be read: give the one that was saved for it, or none`,
    )
    this.stream = name
  }
}

/** Whether the item shows that a connection is of use, so that the next one need not back off. */
export function isProgress(item: StreamItem): boolean {
  return item.kind === 'event' && item.isNew && item.event.type !== 'stream.gap'
}

/** The events of a stream, without their positions. */
export function eventsOf<Event extends ResearchEvent>(
  items: Observable<StreamItem<Event>>,
): Observable<Event> {
  return new Observable((subscriber) => items.subscribe(new EventSubscriber(subscriber)))
}

/** A class instead of `filter` and `map`, because every event of every stream passes through it. */
class EventSubscriber<Event extends ResearchEvent> extends Subscriber<StreamItem<Event>> {
  readonly #subscriber: Subscriber<Event>

  constructor(subscriber: Subscriber<Event>) {
    super(subscriber)
    this.#subscriber = subscriber
  }

  override next(item: StreamItem<Event>): void {
    if (item.kind === 'event') this.#subscriber.next(item.event)
  }
}
