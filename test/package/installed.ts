import { cp, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sharedBuild } from '../support/builds.ts'
import { installedIn } from './build.ts'
import type { InstalledPackage } from './build.ts'

/** The package that the test files of a run share. Nothing may be written into its folder. */
export async function sharedPackage(): Promise<Pick<InstalledPackage, 'folder' | 'path'>> {
  return installedIn(await sharedBuild('package'))
}

/** The same package in a folder of its own. */
export async function installPackage(): Promise<InstalledPackage> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-package-'))
  await cp(await sharedBuild('package'), folder, { recursive: true, verbatimSymlinks: true })
  return installedIn(folder)
}
