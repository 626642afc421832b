import fc from 'fast-check'

/**
 * Property tests draw anew each time, so that they go on exploring, except where `CI` is set: there the same draw
 * judges every change, and a red run means the change.
 */
if (process.env.CI) fc.configureGlobal({ seed: 20_261_130 })
