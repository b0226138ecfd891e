"""Material that several tests share: streams of samples, folders of photos, an arena of networks and stimuli."""
