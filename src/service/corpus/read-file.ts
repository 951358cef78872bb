import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { type FoundFile, inodeOf } from './files.ts'

/** A symbolic link is not opened (not on Windows, which has no such flag), and nothing that makes `open` wait, such as a pipe. */
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants

/**
 * Reads a file that a scan has found. Rejects when another file has replaced it since, also through a symbolic link in its path,
 * or when it is longer than `limit` bytes.
 */
export async function readFound({ path, inode }: FoundFile, limit: number): Promise<Uint8Array> {
  await using handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  // The properties of the open file, since its path may lead to another file at any time.
  const stats = await handle.stat()
  if (!stats.isFile() || inodeOf(stats) !== inode) throw new Error(`${path} is another file than before`)
  if (stats.size > limit) throw new Error(`${path} is longer than ${limit} bytes`)
  return await handle.readFile()
}
