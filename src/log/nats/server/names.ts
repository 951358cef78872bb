import { hash } from 'node:crypto'
import type { Partitions } from '../../store/sharing-store.ts'
import { storedText } from '../../../protocol/stored-text.ts'

/**
 * The names of a log's streams, bucket and subjects in JetStream. Names of resources, readers and deliveries may have any
 * characters and any length, so subjects have their hashes.
 */
export class Names {
  /** The stream of the entries. */
  readonly events: string
  /** The stream of the journals, of the log's metadata, and of the inbox. */
  readonly state: string
  /** The bucket of the leases. */
  readonly leases: string
  readonly #root: string
  /** The number of partitions. That of the log is known once it is open. */
  partitions: number

  /** @param log The name of the log: letters, digits, `-` and `_`. */
  constructor(log: string, partitions: number) {
    this.events = `rivulet_${log}_events`
    this.state = `rivulet_${log}_state`
    this.leases = `rivulet_${log}_leases`
    this.#root = `rv.${log}`
    this.partitions = partitions
  }

  /** The subjects of {@link events}. */
  get allEntries(): string {
    return `${this.#root}.ev.>`
  }

  /** The subjects of {@link state}. */
  get allState(): readonly string[] {
    return ['about', 'jr.*', 'st.*', 'dl.>', 'sn.>', 'id.*', 'fg.*', 'in.*', 'pt.*', 'gr.*'].map(
      (rest) => `${this.#root}.${rest}`,
    )
  }

  /** The metadata of the log: its epoch, and its trimmed part. */
  get about(): string {
    return `${this.#root}.about`
  }

  /** The entries of a source. All of a source are in one partition. */
  entries(source: string): string {
    const digest = digestOf(source)
    return `${this.#root}.ev.${this.#partition(digest)}.${tokenOf(digest)}`
  }

  /** The division of sources into partitions. */
  get sources(): Partitions {
    return { count: this.partitions, of: (source) => this.partitionOf(source) }
  }

  /** The partition of an entry's subject. */
  partitionOfSubject(subject: string): number {
    return Number(subject.slice(`${this.#root}.ev.`.length).split('.', 1)[0])
  }

  /** The partition of a source. It depends on nothing but the source and the number of partitions. */
  partitionOf(source: string): number {
    return this.#partition(digestOf(source))
  }

  /**
   * The journal of a claimed name: its owner, and everything that the owner has written. There may be a million upstream streams, so
   * their journals are apart from those of readers, which are found without them.
   */
  journal(claimed: string): string {
    return `${this.#root}.${isStream(claimed) ? 'st' : 'jr'}.${hashOf(claimed)}`
  }

  /** The journals of upstream streams. */
  get streamJournals(): string {
    return `${this.#root}.st.*`
  }

  /** All other journals. */
  get readerJournals(): string {
    return `${this.#root}.jr.*`
  }

  /** The message that is published, but not stored, after a change of a journal for which calls may wait. */
  journalChanges(claimed: string): string {
    return `${this.#root}.ch.${hashOf(claimed)}`
  }

  /** The copy of an entry that a reader could not handle. */
  deadLetter(reader: string, position: string): string {
    return `${this.#root}.dl.${hashOf(reader)}.${hashOf(position)}`
  }

  /** The copies of all entries that a reader could not handle. */
  deadLetters(reader: string): string {
    return `${this.#root}.dl.${hashOf(reader)}.*`
  }

  /** The copies of the entries that any reader could not handle. */
  get allDeadLetters(): string {
    return `${this.#root}.dl.>`
  }

  /** The parts of a snapshot of a journal. */
  snapshot(claimed: string, snapshot: string): string {
    return `${this.#root}.sn.${hashOf(claimed)}.${snapshot}`
  }

  /** The parts of all snapshots of a journal. */
  snapshots(claimed: string): string {
    return `${this.#root}.sn.${hashOf(claimed)}.*`
  }

  /** The identities of the deleted entries of a source, by the hash of it. */
  identities(token: string): string {
    return `${this.#root}.id.${token}`
  }

  /** The identities of all deleted entries. */
  get allIdentities(): string {
    return `${this.#root}.id.*`
  }

  /** The identities of the forgotten entries of a source, by the hash of it. */
  forgotten(token: string): string {
    return `${this.#root}.fg.${token}`
  }

  /** The identities of the forgotten entries of all sources. */
  get allForgotten(): string {
    return `${this.#root}.fg.*`
  }

  /** The chunks of texts that are too long for one message, by the last token of the subject of their messages. */
  parts(token: string): string {
    return `${this.#root}.pt.${token}`
  }

  /** The record of a group: its members, and which of them has each part. */
  group(group: string, parts: number): string {
    return `${this.#root}.gr.${hashOf(`${parts} ${group}`)}`
  }

  /** The message that is published, but not stored, after a change of the log: waiting calls check again. */
  get changes(): string {
    return `${this.#root}.changed`
  }

  /** All webhooks of the inbox. */
  get allDeliveries(): string {
    return `${this.#root}.in.*`
  }

  /** A webhook of the inbox. */
  delivery(id: string): string {
    return this.deliveryOf(hashOf(id))
  }

  /** A webhook of the inbox, by the hash of its id. */
  deliveryOf(token: string): string {
    return `${this.#root}.in.${token}`
  }

  #partition(digest: Buffer): number {
    return digest.readUInt32BE(0) % this.partitions
  }

  /** The stream of {@link leases}. */
  get leaseStream(): string {
    return `KV_${this.leases}`
  }

  /** The subject of the lease of an open log. */
  lease(instance: string): string {
    return `$KV.${this.leases}.${instance}`
  }
}

/** Whether a claimed name is that of an upstream stream, which is no reader. */
export function isStream(claimed: string): boolean {
  return claimed.startsWith('stream:')
}

/** A text as a token of a subject: a hash of 132 bits, so that two texts do not collide. */
export function hashOf(text: string): string {
  return tokenOf(digestOf(text))
}

function tokenOf(digest: Buffer): string {
  return digest.toString('base64url').slice(0, 22)
}

/** Texts that differ in lone surrogates alone are different ones. */
function digestOf(text: string): Buffer {
  return hash('sha256', storedText(text), 'buffer')
}
