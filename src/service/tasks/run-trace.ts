import type { RunProgressMessage, RunProgressStats } from '../../protocol/run-trace.ts'
import type { ProcessorProgress } from '../processor/processor.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** Maximum number of messages of a trace; one more says that the others are omitted. */
const MAX_MESSAGES = 500
/** Maximum length of a message and of a source's URL, in characters. */
const MAX_TEXT = 2_000
/** Maximum number of URLs in the sample of sources. */
const MAX_SAMPLE = 10

/** The messages and the current statistics of a run, as they are sent and stored. */
export interface StoredTrace {
  readonly messages: readonly RunProgressMessage[]
  readonly stats: RunProgressStats
}

/** The trace of one execution of a run. Bounded, whatever the processor reports. */
export class RunTrace implements StoredTrace {
  readonly #messages: RunProgressMessage[] = []
  #stats: RunProgressStats = {
    type: 'task_run.progress_stats',
    source_stats: { num_sources_considered: null, num_sources_read: null, sources_read_sample: null },
    progress_meter: 0,
  }

  get messages(): readonly RunProgressMessage[] {
    return this.#messages
  }

  /** A new object at each change. */
  get stats(): RunProgressStats {
    return this.#stats
  }

  /** Adds progress. `timestamp` is RFC 3339. */
  add(progress: ProcessorProgress, timestamp: string): void {
    const { message, meter, sourcesConsidered, sourcesRead, sourcesSample } = progress
    if (message !== undefined) this.#addMessage(message.kind, message.text, timestamp)
    const changes = [meter, sourcesConsidered, sourcesRead, sourcesSample]
    if (changes.every((change) => change === undefined)) return
    const { source_stats: previous, progress_meter } = this.#stats
    const sample = sourcesSample?.slice(0, MAX_SAMPLE).map((url) => cutText(url, MAX_TEXT))
    this.#stats = {
      type: 'task_run.progress_stats',
      source_stats: {
        num_sources_considered: count(sourcesConsidered) ?? previous.num_sources_considered,
        num_sources_read: count(sourcesRead) ?? previous.num_sources_read,
        sources_read_sample: sample ?? previous.sources_read_sample,
      },
      // A meter that goes back would be misleading. NaN counts as 0.
      progress_meter: Math.min(100, Math.max(progress_meter, meter || 0)),
    }
  }

  /** The trace of an execution that has ended, to store. `timestamp` is RFC 3339. */
  ended(status: 'completed' | 'failed', timestamp: string): StoredTrace {
    const message = `The run has ${status}`
    return {
      messages: [...this.#messages, { type: 'task_run.progress_msg.exec_status', message, timestamp }],
      stats: status === 'completed' ? { ...this.#stats, progress_meter: 100 } : this.#stats,
    }
  }

  #addMessage(kind: string, text: string, timestamp: string): void {
    const { length } = this.#messages
    if (length > MAX_MESSAGES) return
    const [type, message] =
      length < MAX_MESSAGES
        ? [kind, cutText(text, MAX_TEXT)]
        : ['exec_status', 'Further messages are omitted']
    this.#messages.push({ type: `task_run.progress_msg.${type}`, message, timestamp })
  }
}

function count(value: number | undefined): number | undefined {
  return value !== undefined && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
