import { LogUnsupportedError } from '../../log/errors.ts'
import type { Position } from '../../log/store/contract.ts'

/** Digits of a number in an offset: enough for each safe integer. */
const WIDTH = 16

/** The epoch of a log, the number of an entry in it or in each of its partitions, and a token. */
const POSITION = /^([\da-z]{1,64}[.:])(\d{1,16}(?:-\d{1,16}){0,999})([.:][\da-z]{1,64})?$/

/**
 * A position of the log as an offset of a stream. Its numbers have a fixed width, since offsets are compared as texts. The offsets of a log
 * with several partitions have no order as texts.
 */
export function offsetOf(position: Position): string {
  const [, epoch, numbers, token = ''] = POSITION.exec(position) ?? []
  if (epoch === undefined || numbers === undefined) {
    throw new LogUnsupportedError('positions of this store cannot be offsets of a stream')
  }
  return epoch + numbers.replaceAll(/\d+/g, (number) => number.padStart(WIDTH, '0')) + token
}

/** The position of an offset, or of a text that is a position itself; undefined for anything else. */
export function positionOf(offset: string): Position | undefined {
  const [, epoch, numbers, token = ''] = POSITION.exec(offset) ?? []
  if (epoch === undefined || numbers === undefined) return undefined
  return epoch + numbers.replaceAll(/\d+/g, (number) => String(Number(number))) + token
}
