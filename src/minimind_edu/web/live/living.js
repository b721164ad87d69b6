// What a figure gets that asks for the living model: the model, its world, and what they can do. This code travels
// with the weights, as a script of its own, so that no figure has to carry it for readers who never ask.

import { bytesOf, createLiveModel, unpackWeights } from "./model.js";
import { sample, softmax } from "./sampling.js";
import { hashOfStory, keepStory, onStory, storyOf } from "./story.js";
import { createTraining } from "./train.js";
import { createWorld } from "./world.js";

/**
 * payload: { weights: the file as base64, world: the tables of the world, heads: what is known about them, story: the
 * text that stands for a reader's story until there is one, page: the page on which it is written }.
 */
function openLiving({ weights, world: tables, ...others }) {
  const unpacked = unpackWeights(bytesOf(weights));
  const opened = { model: createLiveModel(unpacked), tensors: unpacked.tensors, world: createWorld(tables), tables };
  return {
    ...opened,
    ...others,
    createLiveModel,
    softmax,
    sample,
    createTraining,
    storyOf,
    keepStory,
    onStory,
    hashOfStory,
  };
}

export default openLiving;
