"""Do transferability scores predict performances better than a fixed order of the models?"""
