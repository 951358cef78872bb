import { readdir, readFile } from 'node:fs/promises'
import type { PageFile } from './page-file.ts'

/** The folder to which the build writes the page, beside the folder of this module: `dist/dashboard/`. */
const FOLDER = new URL('../../dashboard/', import.meta.url)

/** Reads the page that the build has written. */
export async function pageFiles(): Promise<readonly PageFile[]> {
  const names = await readdir(FOLDER)
  return Promise.all(names.map(async (name) => ({ name, bytes: await readFile(new URL(name, FOLDER)) })))
}
